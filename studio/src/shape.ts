// Messages as they come from the server, made safe to show. What is stored may be anything an old
// version, an import or a hook has written, and the stock hook looks into every part of it: one
// part that is no object would take the whole page down. A part nobody can read becomes one that
// says so; it is never dropped in silence.
import type { UIMessage } from "ai";

type Fields = Record<string, unknown>;
type Part = UIMessage["parts"][number];

/** The kind of a part that stands for one nobody can read. */
export const UNREADABLE = "data-unreadable";

const TOOL_STATES = new Set([
  "input-streaming",
  "input-available",
  "approval-requested",
  "approval-responded",
  "output-available",
  "output-error",
  "output-denied",
]);
const WITH_APPROVAL = new Set(["approval-requested", "approval-responded", "output-denied"]);

export function readMessages(value: unknown): UIMessage[] {
  return Array.isArray(value) ? value.flatMap(readMessage) : [];
}

/** One message, or nothing if it is none. */
export function readMessage(value: unknown): UIMessage[] {
  if (!isFields(value) || typeof value.id !== "string" || typeof value.role !== "string") return [];
  const parts = Array.isArray(value.parts) ? value.parts.map(readPart) : [];
  return [{ ...value, parts } as unknown as UIMessage];
}

export function readPart(part: unknown): Part {
  if (isFields(part) && typeof part.type === "string" && isSound(part, part.type)) return part as unknown as Part;
  return { type: UNREADABLE, data: null };
}

function isSound(part: Fields, type: string): boolean {
  if (type === "text" || type === "reasoning") return typeof part.text === "string";
  if (type === "file") return typeof part.mediaType === "string" && typeof part.url === "string" && optional(part.filename);
  if (type === "source-url") return typeof part.url === "string" && optional(part.title);
  if (type === "dynamic-tool") return typeof part.toolName === "string" && isCall(part);
  return !type.startsWith("tool-") || isCall(part);
}

function isCall({ toolCallId, state, approval }: Fields): boolean {
  if (typeof toolCallId !== "string" || typeof state !== "string" || !TOOL_STATES.has(state)) return false;
  return !WITH_APPROVAL.has(state) || (isFields(approval) && typeof approval.id === "string");
}

function optional(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
