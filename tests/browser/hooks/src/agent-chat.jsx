// `useAgent` and `useAgentChat`, from whichever package this bundle maps `chat-hook` to.
import { useAgent } from "agents/react";
import { useAgentChat } from "chat-hook";
import { useState } from "react";
import { Frame, show } from "./frame.jsx";
import * as settings from "./settings.js";
import { tools } from "./tools.js";

function Page() {
  const [ends, setEnds] = useState([]);
  const [refusal, setRefusal] = useState("");
  const agent = useAgent({
    agent: settings.agent,
    name: settings.name,
    prefix: settings.prefix,
    minReconnectionDelay: 50,
    maxReconnectionDelay: 200,
    onStateUpdateError: setRefusal,
  });
  const chat = useAgentChat({
    agent,
    tools,
    onToolCall: ({ toolCall, addToolOutput }) => {
      if (toolCall.toolName !== "get_place") return;
      addToolOutput({ toolCallId: toolCall.toolCallId, output: tools.get_place.execute() });
    },
    onTurnEnd: (end) => setEnds((all) => [...all, end.outcome]),
  });
  window.agent = agent;
  const flags = {
    "server-streaming": chat.isServerStreaming,
    recovering: chat.isRecovering,
    continuing: chat.isToolContinuation,
  };
  return (
    <>
      <Frame chat={chat} flags={flags} onStop={chat.stop} onClear={chat.clearHistory} />
      <output aria-label="Identity" data-connected={agent.identified || undefined}>
        {agent.identified ? `${agent.agent}/${agent.name}` : "unknown"}
      </output>
      <output aria-label="State">{JSON.stringify(agent.state)}</output>
      <output aria-label="Refusal">{refusal}</output>
      <output aria-label="Ends">{ends.join(" ")}</output>
    </>
  );
}

show(Page);
