// The AI SDK's own chat over its own HTTP transport, driven line by line: each line of input is a command, each
// line of output what the chat shows once the command is done.
import { createInterface } from "node:readline";

const {
  AbstractChat,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} = await import(new URL("../ai_sdk/node_modules/ai/dist/index.js", import.meta.url));

// What `useChat` keeps in React, kept in an object: every change wakes whoever waits.
class State {
  #values = { status: "ready", error: undefined, messages: [] };
  waiting = new Set();
  get status() { return this.#values.status; }
  set status(value) { this.#change({ status: value }); }
  get error() { return this.#values.error; }
  set error(value) { this.#change({ error: value }); }
  get messages() { return this.#values.messages; }
  set messages(value) { this.#change({ messages: value }); }
  pushMessage = (message) => { this.messages = [...this.messages, message]; };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (index, message) => { this.messages = this.messages.with(index, structuredClone(message)); };
  snapshot = (value) => structuredClone(value);
  #change(values) {
    Object.assign(this.#values, values);
    for (const look of this.waiting) look();
  }
}

class Chat extends AbstractChat {
  constructor(options) {
    const state = new State();
    super({ ...options, state });
    this.shown = state;
  }
}

const api = process.argv[2];
let chat = newChat([]);

function newChat(messages) {
  const made = new Chat({
    id: "my chat",
    transport: new DefaultChatTransport({ api }),
    onError: () => {},
    sendAutomaticallyWhen: (options) =>
      lastAssistantMessageIsCompleteWithToolCalls(options) ||
      lastAssistantMessageIsCompleteWithApprovalResponses(options),
  });
  made.messages = messages;
  return made;
}

function text() {
  const words = (m) => m.parts.filter((p) => p.type === "text").map((p) => p.text).join("");
  return chat.messages.map(words).join("|");
}

function part(id) {
  return chat.messages.flatMap((m) => m.parts).find((p) => p.toolCallId === id);
}

function until(holds) {
  return new Promise((resolve) => {
    const look = () => { if (holds()) { chat.shown.waiting.delete(look); resolve(); } };
    chat.shown.waiting.add(look);
    look();
  });
}

const commands = {
  send: ({ text }) => { chat.sendMessage({ text }).catch(() => {}); },
  edit: ({ text, id }) => { chat.sendMessage({ text, messageId: id }).catch(() => {}); },
  regenerate: () => { chat.regenerate().catch(() => {}); },
  output: ({ tool, id, output }) => { chat.addToolOutput({ tool, toolCallId: id, output }); },
  decide: ({ id, approved }) => { chat.addToolApprovalResponse({ id, approved }); },
  stop: () => chat.stop(),
  reload: async () => {
    const stored = await (await fetch(api.replace(/chat$/, "get-messages"))).json();
    chat = newChat(stored);
    chat.resumeStream().catch(() => {});
  },
  shows: ({ part }) => until(() => text().includes(part)),
  waits: ({ id, state }) => until(() => chat.status === "ready" && part(id)?.state === state),
  status: ({ status }) => until(() => chat.status === status),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: command, ...options } = JSON.parse(line);
  await commands[command](options);
  const { messages, status, error } = chat;
  console.log(JSON.stringify({ messages, status, error: error?.message ?? null }));
}
