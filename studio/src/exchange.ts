// The transcript as a reader sees it: what was asked, and the answer to it as one piece.
//
// While an answer goes on after a tool result or an approval, the hook may hold it as two messages
// until the server sends the stored one. Both belong to one answer, so they are shown as one.
import { isToolUIPart, type UIMessage } from "ai";
import { UNREADABLE } from "./shape";

export type Part = UIMessage["parts"][number];

export interface Entry {
  role: UIMessage["role"];
  /** The stored message this entry stands for. */
  id: string;
  /** The message before it, whose child it is. */
  parent: string | null;
  parts: Part[];
}

export function entriesOf(messages: readonly UIMessage[]): Entry[] {
  const entries: Entry[] = [];
  let parent: string | null = null;
  for (const { id, role, parts } of messages) {
    const last = entries.at(-1);
    if (role === "assistant" && last?.role === "assistant") {
      last.parts = joined(last.parts, parts);
    } else {
      entries.push({ role, id, parent, parts });
      parent = id;
    }
  }
  // The hook goes on writing into the parts of a new answer. What is shown must stay as it was
  // shown, or nobody could tell that it has changed.
  const newest = entries.at(-1);
  if (newest) newest.parts = newest.parts.map((part) => ({ ...part }));
  return entries;
}

/** A call that the second half tells about again stays one card, in its newest state. */
function joined(before: readonly Part[], after: readonly Part[]): Part[] {
  const newest = new Map(after.filter(isToolUIPart).map((part) => [part.toolCallId, part]));
  const kept = before.map((part) => (isToolUIPart(part) ? (newest.get(part.toolCallId) ?? part) : part));
  const shown = new Set(before.filter(isToolUIPart).map((part) => part.toolCallId));
  return [...kept, ...after.filter((part) => !isToolUIPart(part) || !shown.has(part.toolCallId))];
}

export function textOf(parts: readonly Part[]): string {
  return parts
    .flatMap((part) => (part.type === "text" && part.text ? [part.text] : []))
    .join("\n\n");
}

/** Something of it can be seen. */
export function isVisible(part: Part): boolean {
  if (part.type === "text" || part.type === "reasoning") return part.text !== "";
  return part.type === "file" || part.type === "source-url" || part.type === UNREADABLE || isToolUIPart(part);
}

/** Equal in content: the hook makes new objects for everything with each chunk. */
export function same(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true;
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  const keys = Object.keys(left);
  if (keys.length !== Object.keys(right).length) return false;
  return keys.every((key) => same((left as Record<string, unknown>)[key], (right as Record<string, unknown>)[key]));
}
