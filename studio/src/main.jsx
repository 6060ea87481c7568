import "./no-eval.js";
import { StrictMode, Suspense, useState } from "react";
import { createRoot } from "react-dom/client";
import { Chat } from "./chat.jsx";
import { agents, firstAgent, name } from "./settings.js";
import "./app.css";

function Page() {
  const [agent, setAgent] = useState(firstAgent);
  const picker = agents.length > 1 && (
    <select aria-label="Agent" value={agent} onChange={(event) => setAgent(event.target.value)}>
      {agents.map((each) => (
        <option key={each}>{each}</option>
      ))}
    </select>
  );
  return (
    <Suspense fallback={<p className="loading">Connecting…</p>}>
      <Chat key={agent} agentName={agent} name={name} picker={picker} />
    </Suspense>
  );
}

createRoot(document.getElementById("root")).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
