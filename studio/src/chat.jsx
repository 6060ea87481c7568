// One conversation: the stock hooks do the talking, this file only shows what they know.
import { useAgentChat } from "@cloudflare/ai-chat/react";
import { useAgent } from "agents/react";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { Composer } from "./composer.jsx";
import { Message } from "./message.jsx";
import { prefix } from "./settings.js";

export function Chat({ agentName, name, picker }) {
  const agent = useAgent({ agent: agentName, name, prefix });
  const connected = useConnected(agent);
  const chat = useAgentChat({ agent });
  const busy = chat.status === "submitted" || chat.status === "streaming" || chat.isServerStreaming;
  const status = !connected ? "connecting" : busy ? "streaming" : chat.status;

  return (
    <div className="page">
      <header>
        <h1>{picker || agentName}</h1>
        <span className="conversation">{name}</span>
        <output className={`status ${status}`} data-status={status} aria-label="Status">
          {status}
        </output>
        <button type="button" className="quiet" onClick={chat.clearHistory} disabled={chat.messages.length === 0}>
          Clear
        </button>
      </header>
      <Transcript messages={chat.messages} busy={busy} waiting={chat.status === "submitted"} />
      {chat.error && (
        <p className="error" role="alert">
          {chat.error.message}
        </p>
      )}
      <Composer
        busy={busy}
        onSend={(text) => chat.sendMessage({ text })}
        onStop={chat.stop}
        agentName={agentName}
      />
    </div>
  );
}

function Transcript({ messages, busy, waiting }) {
  const list = useRef(null);
  const atEnd = useRef(true);

  useLayoutEffect(() => {
    if (atEnd.current) list.current.scrollTop = list.current.scrollHeight;
  });

  function remember({ currentTarget: box }) {
    atEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < 48;
  }

  return (
    <main ref={list} onScroll={remember} role="log" aria-label="Conversation" aria-busy={busy} tabIndex={0}>
      <div className="column">
        {messages.length === 0 && <p className="empty">Say something to begin.</p>}
        {messages.map((message) => (
          <Message key={message.id} message={message} />
        ))}
        {waiting && <p className="waiting" aria-label="Waiting for the answer">●</p>}
      </div>
    </main>
  );
}

function useConnected(agent) {
  const [connected, setConnected] = useState(agent.readyState === WebSocket.OPEN);
  useEffect(() => {
    const update = () => setConnected(agent.readyState === WebSocket.OPEN);
    update();
    agent.addEventListener("open", update);
    agent.addEventListener("close", update);
    return () => {
      agent.removeEventListener("open", update);
      agent.removeEventListener("close", update);
    };
  }, [agent]);
  return connected;
}
