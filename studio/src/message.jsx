// A message and its parts. Parts of kinds the page does not know are left out.
import { getToolName, isToolUIPart } from "ai";
import { memo } from "react";
import Markdown from "react-markdown";
import remarkGfm from "remark-gfm";

const PLUGINS = [remarkGfm];

const STATES = {
  "input-streaming": "preparing",
  "input-available": "running",
  "approval-requested": "waiting for approval",
  "approval-responded": "answered",
  "output-available": "done",
  "output-error": "failed",
  "output-denied": "denied",
};

export function Message({ message }) {
  const Text = message.role === "user" ? PlainText : MarkdownText;
  const parts = message.parts.map((part, index) => <Part key={index} part={part} Text={Text} />);
  return (
    <article className={`message ${message.role}`} data-role={message.role} aria-label={label(message.role)}>
      {parts}
    </article>
  );
}

function label(role) {
  return role === "user" ? "You" : "Assistant";
}

// Markdown is parsed again only for the part that changed.
const MarkdownText = memo(function MarkdownText({ text }) {
  return (
    <div className="text markdown">
      <Markdown remarkPlugins={PLUGINS}>{text}</Markdown>
    </div>
  );
});

function PlainText({ text }) {
  return <div className="text">{text}</div>;
}

function Part({ part, Text }) {
  if (part.type === "text") return part.text ? <Text text={part.text} /> : null;
  if (part.type === "reasoning") return <Reasoning part={part} />;
  if (isToolUIPart(part)) return <Tool part={part} />;
  return null;
}

function Reasoning({ part }) {
  if (!part.text) return null;
  const thinking = part.state === "streaming";
  return (
    <details className="reasoning" open={thinking}>
      <summary>{thinking ? "Thinking…" : "Thoughts"}</summary>
      <PlainText text={part.text} />
    </details>
  );
}

function Tool({ part }) {
  const name = getToolName(part);
  const failed = part.state === "output-error";
  return (
    <details className={`tool ${part.state}`} data-tool={name} data-state={part.state} aria-label={`Tool ${name}`}>
      <summary>
        <code>{name}</code>
        <span className="arguments">{brief(part.input)}</span>
        <span className="state">{STATES[part.state] ?? part.state}</span>
      </summary>
      <Value title="Input" value={part.input} />
      {part.state === "output-available" && <Value title="Output" value={part.output} />}
      {failed && <Value title="Error" value={part.errorText} />}
    </details>
  );
}

function Value({ title, value }) {
  if (value === undefined) return null;
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return (
    <div className="value">
      <h3>{title}</h3>
      <pre>{text}</pre>
    </div>
  );
}

function brief(input) {
  if (input === undefined || input === null) return "";
  if (typeof input !== "object") return String(input);
  return Object.entries(input)
    .map(([key, value]) => `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");
}
