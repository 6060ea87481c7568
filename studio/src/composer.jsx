import { useState } from "react";

export function Composer({ busy, onSend, onStop, agentName }) {
  const [text, setText] = useState("");

  function submit(event) {
    event?.preventDefault();
    if (!text.trim()) return;
    onSend(text.trim());
    setText("");
  }

  function onKeyDown(event) {
    const composing = event.nativeEvent.isComposing;
    if (event.key === "Enter" && !event.shiftKey && !composing) submit(event);
    if (event.key === "Escape" && busy) onStop();
  }

  return (
    <form className="composer" onSubmit={submit}>
      <div className="column">
        <textarea
          aria-label="Message"
          placeholder={`Message ${agentName}`}
          rows={1}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={onKeyDown}
          autoFocus
        />
        {busy && (
          <button type="button" className="stop" onClick={onStop}>
            Stop
          </button>
        )}
        <button type="submit" disabled={!text.trim()}>
          Send
        </button>
      </div>
    </form>
  );
}
