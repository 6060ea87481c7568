// Long conversations cost little: a socket in front of the unmodified hooks that speaks Thinkwell's
// short form with the server (docs/long-conversations.md) and the whole form with the hooks.
//
// Out: a chat request carries the hook's whole list; only what the server does not have yet is sent.
// In: `cf_agent_chat_messages` with `after` says what follows that message; the hook gets the list.
// On the way it sees which request runs and which wait, which the hook does not tell.
//
//   const compact = useMemo(() => new CompactSocket(), [name]);
//   useAgent({ agent, name, query: { thinkwell: "1" }, WebSocket: compact.socket });
import type { UIMessage } from "ai";
import { readMessage, readMessages } from "./shape";

const REQUEST_END = '"type":"cf_agent_use_chat_request"}';
const CLEAR = "cf_agent_chat_clear";
const MOST_STOPPED = 200;

type Frame = Record<string, unknown> & { type?: unknown; id?: unknown };
type Listener = (event: Event) => void;

/** What the page shows of requests. */
export interface Requests {
  /** The one the server works on, as far as this page knows. */
  running: string | null;
  /** Of this page, without an end, oldest first. */
  open: readonly string[];
  /** Questions that were stopped, by message id. */
  stopped: ReadonlySet<string>;
  /** The model that the answer waits for: it has no free slot. */
  modelWaits: string | null;
}

export class CompactSocket {
  /** For the option `WebSocket` of `useAgent`. */
  readonly socket: typeof WebSocket;
  private list: UIMessage[] = [];
  private stored = new Set<string>();
  private requests: Requests;
  private readonly listeners = new Set<() => void>();

  constructor(stopped: readonly string[] = []) {
    this.requests = { running: null, open: [], stopped: new Set(stopped), modelWaits: null };
    this.socket = socketOf(this);
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly snapshot = (): Requests => this.requests;

  /** A new connection: the server tells anew what runs; what ended meanwhile is not told. */
  opened(): void {
    this.set({ running: null, open: [], modelWaits: null });
  }

  /** What the hook sends, as it goes to the server. */
  outgoing(data: string): string {
    if (data.includes(CLEAR)) this.forget();
    if (!data.endsWith(REQUEST_END)) return data;
    const frame = JSON.parse(data) as { id: string; init: { body: string } };
    const body = JSON.parse(frame.init.body) as { messages: UIMessage[] };
    const { messages } = body;
    this.list = messages;
    this.set({ open: [...this.requests.open, frame.id] });
    const from = firstToSend(messages, this.stored);
    const short = JSON.stringify({ ...body, messages: messages.slice(from) });
    const before = messages[from - 1];
    const after = before && !isGrowing(before) ? before.id : null;
    return JSON.stringify({ ...frame, init: { ...frame.init, body: short }, after });
  }

  /** What the server sends, as the hook takes it. */
  incoming(data: string): string {
    let frame: Frame;
    try {
      frame = JSON.parse(data) as Frame;
    } catch {
      return data; // an app's own message
    }
    switch (frame?.type) {
      case "cf_agent_chat_messages":
        return this.transcript(frame);
      case "cf_agent_message_updated":
        return this.updated(frame);
      case "cf_agent_use_chat_response":
        this.response(frame);
        return data;
      case "cf_agent_stream_resuming":
      case "cf_agent_stream_pending":
        if (typeof frame.id === "string") this.set({ running: frame.id });
        return data;
      case "thinkwell_model_waiting":
        this.set({ modelWaits: frame.waiting === true ? String(frame.model) : null });
        return data;
      case CLEAR:
        this.forget();
        return data;
      default:
        return data;
    }
  }

  private transcript({ after, ...frame }: Frame): string {
    const told = readMessages(frame.messages);
    if (after !== undefined) {
      this.list = spliced(this.list, after, told);
    } else {
      this.list = told;
      this.stored = new Set();
    }
    for (const { id } of told) this.stored.add(id);
    return JSON.stringify({ ...frame, messages: this.list });
  }

  private updated(frame: Frame): string {
    const [message] = readMessage(frame.message);
    if (!message) return "{}";
    const place = this.list.findLastIndex((each) => each.id === message.id);
    this.list = place < 0 ? [...this.list, message] : this.list.with(place, message);
    this.stored.add(message.id);
    return JSON.stringify({ ...frame, message });
  }

  private response({ id, done, outcome, messageIds }: Frame): void {
    if (typeof id !== "string") return;
    if (done !== true) {
      if (this.requests.running !== id) this.set({ running: id });
      return;
    }
    const { running, open, stopped } = this.requests;
    this.set({
      running: running === id ? null : running,
      open: open.filter((each) => each !== id),
      stopped: outcome === "aborted" ? withIds(stopped, messageIds) : stopped,
    });
  }

  private forget(): void {
    this.list = [];
    this.stored = new Set();
  }

  private set(changed: Partial<Requests>): void {
    this.requests = { ...this.requests, ...changed };
    for (const listener of this.listeners) listener();
  }
}

/** The list up to `after`, then what was told. A place nobody knows (null is the top) loses nothing. */
function spliced(list: readonly UIMessage[], after: unknown, told: readonly UIMessage[]): UIMessage[] {
  const place = list.findLastIndex((message) => message.id === after);
  if (place >= 0 || after === null) return [...list.slice(0, place + 1), ...told];
  const known = new Set(list.map((message) => message.id));
  return [...list, ...told.filter((message) => !known.has(message.id))];
}

/** From the first message the server does not have; at least what is asked now, which may be an edit. */
function firstToSend(messages: readonly UIMessage[], stored: ReadonlySet<string>): number {
  const known = messages.findLastIndex((message) => stored.has(message.id)) + 1;
  const asked = messages.findLastIndex((message) => message.role !== "user") + 1;
  return Math.max(0, Math.min(known, asked, messages.length - 1));
}

/** More of it is under way: the server shows the list again before the next answer. */
function isGrowing({ parts }: UIMessage): boolean {
  return parts.some((part) => "state" in part && part.state === "streaming");
}

function withIds(before: ReadonlySet<string>, ids: unknown): ReadonlySet<string> {
  const added = Array.isArray(ids) ? ids.filter((id): id is string => typeof id === "string") : [];
  return added.length === 0 ? before : new Set([...before, ...added].slice(-MOST_STOPPED));
}

function socketOf(compact: CompactSocket): typeof WebSocket {
  const wrapped = new WeakMap<object, Listener>();
  return class extends WebSocket {
    constructor(url: string | URL, protocols?: string | string[]) {
      super(url, protocols);
      compact.opened();
    }

    override send(data: Parameters<WebSocket["send"]>[0]): void {
      super.send(typeof data === "string" ? compact.outgoing(data) : data);
    }

    override addEventListener(type: string, listener: unknown, options?: boolean | AddEventListenerOptions): void {
      super.addEventListener(type, this.wrap(type, listener as Listener), options);
    }

    override removeEventListener(type: string, listener: unknown, options?: boolean | EventListenerOptions): void {
      super.removeEventListener(type, wrapped.get(listener as object) ?? (listener as Listener), options);
    }

    private wrap(type: string, listener: Listener): Listener {
      if (type !== "message") return listener;
      const reading: Listener = (event) => {
        const { data } = event as MessageEvent<unknown>;
        const read = typeof data === "string" ? compact.incoming(data) : data;
        listener.call(this, read === data ? event : new MessageEvent("message", { data: read }));
      };
      wrapped.set(listener, reading);
      return reading;
    }
  };
}
