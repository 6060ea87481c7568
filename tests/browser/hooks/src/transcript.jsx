// The conversation, plainly: one article per message, its parts divided by bars.
import { getToolName, isToolUIPart } from "ai";

export function Transcript({ chat, draft }) {
  return (
    <ol>
      {chat.messages.map((message, index) => (
        <li key={message.id} data-id={message.id}>
          <article data-role={message.role}>{`${message.role}: ${message.parts.map(words).filter(Boolean).join(" | ")}`}</article>
          {message.role === "assistant" ? (
            <button type="button" onClick={() => chat.regenerate({ messageId: message.id })}>
              Regenerate {index}
            </button>
          ) : (
            <button type="button" onClick={() => chat.sendMessage({ text: draft, messageId: message.id })}>
              Edit {index}
            </button>
          )}
          {message.parts.filter(isToolUIPart).map((part) => (
            <Questions key={part.toolCallId} part={part} chat={chat} />
          ))}
        </li>
      ))}
    </ol>
  );
}

// The buttons of a call that waits for the person.
function Questions({ part, chat }) {
  const tool = getToolName(part);
  if (part.state === "approval-requested") {
    const answer = (approved) => chat.addToolApprovalResponse({ id: part.approval.id, approved });
    return (
      <>
        <button type="button" onClick={() => answer(true)}>{`Allow ${tool}`}</button>
        <button type="button" onClick={() => answer(false)}>{`Forbid ${tool}`}</button>
      </>
    );
  }
  if (part.state === "input-available" && tool === "ask_person") {
    const answer = { tool, toolName: tool, toolCallId: part.toolCallId, output: "blue" };
    return <button type="button" onClick={() => chat.addToolOutput(answer)}>{`Answer ${part.toolCallId}`}</button>;
  }
  return null;
}

function words(part) {
  if (part.type === "text") return part.text;
  if (part.type === "reasoning") return `(${part.text})`;
  if (!isToolUIPart(part)) return part.type === "step-start" ? "" : part.type;
  const said = [getToolName(part), part.state, JSON.stringify(part.input)];
  if (part.output !== undefined) said.push(JSON.stringify(part.output));
  if (part.errorText !== undefined) said.push(part.errorText);
  if (part.preliminary) said.push("(more to come)");
  return said.join(" ");
}
