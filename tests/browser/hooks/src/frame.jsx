// The parts every page has: status, error, the field and its buttons.
import { Suspense, useState } from "react";
import { createRoot } from "react-dom/client";
import { Transcript } from "./transcript.jsx";

export function Frame({ chat, flags, onStop, onClear }) {
  const [draft, setDraft] = useState("");
  const busy = Object.entries(flags).filter(([, on]) => on).map(([flag]) => flag);

  function send(event) {
    event.preventDefault();
    chat.sendMessage({ text: draft });
    setDraft("");
  }

  return (
    <main>
      <output aria-label="Status">{[chat.status, ...busy].join(" ")}</output>
      {chat.error && <p role="alert">{chat.error.message}</p>}
      <Transcript chat={chat} draft={draft} />
      <form onSubmit={send}>
        <input aria-label="Message" value={draft} onChange={(event) => setDraft(event.target.value)} />
        <button type="submit">Send</button>
        <button type="button" onClick={onStop}>Stop</button>
        {onClear && <button type="button" onClick={onClear}>Clear</button>}
      </form>
    </main>
  );
}

export function show(Page) {
  createRoot(document.getElementById("root")).render(
    <Suspense fallback={<p>Loading</p>}>
      <Page />
    </Suspense>,
  );
}
