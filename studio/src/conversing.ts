// One conversation on the stock hooks. Everything the page shows and does comes from here.
import { useAgentChat } from "@cloudflare/ai-chat/react";
import { useAgent } from "agents/react";
import { getToolName, isToolUIPart, type FileUIPart, type UIMessage } from "ai";
import { useCallback, useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import type { EntryActions } from "./Answer";
import { ASK_USER, CLIENT_TOOLS, runClientTool } from "./client-tools";
import { CompactSocket, type Requests } from "./compact";
import { loadMessages, useConnection, type Connection } from "./connection";
import { isVisible } from "./exchange";
import type { Call } from "./lookups";
import type { Place } from "./place";
import { recall, remember } from "./remember";
import { prefix } from "./settings";

export interface Conversing {
  messages: UIMessage[];
  status: string;
  busy: boolean;
  waiting: boolean;
  /** Questions that were stopped, by message id. */
  stopped: ReadonlySet<string>;
  connection: Connection;
  refused: { code: number; reason: string } | null;
  recovering: boolean;
  /** The model that has no free slot for this answer now. */
  modelWaits: string | null;
  error: Error | undefined;
  state: unknown;
  call: Call;
  actions: EntryActions;
  send: (text: string, files: FileUIPart[]) => void;
  retry: () => void;
  stop: () => void;
  clear: () => void;
  dismissError: () => void;
}

export function useConversing({ agent: agentName, name }: Place, onTurnEnd: () => void): Conversing {
  const [compact, requests] = useCompact(`stopped:${agentName}/${name}`);
  const agent = useAgent<unknown>({
    agent: agentName,
    name,
    prefix,
    query: DECLARED,
    WebSocket: compact.socket,
    minReconnectionDelay: 500,
    maxReconnectionDelay: 5000,
  });
  const chat = useAgentChat({
    agent,
    getInitialMessages: loadMessages,
    tools: CLIENT_TOOLS,
    onToolCall: runClientTool,
    onTurnEnd,
    // The server owns the transcript and its branches.
    syncMessagesToServer: false,
  });
  const latest = useRef(chat);
  latest.current = chat;

  const call: Call = useCallback((method, args) => agent.call(method, args), [agent]);
  const actions = useMemo<EntryActions>(
    () => ({
      decide: (id, approved) => void latest.current.addToolApprovalResponse({ id, approved }),
      answer: (toolCallId, toolName, output) => latest.current.addToolOutput({ toolCallId, toolName, output }),
      regenerate: (messageId) => void latest.current.regenerate({ messageId }),
      edit: (messageId, text) => {
        const message = latest.current.messages.find((each) => each.id === messageId);
        const files = message?.parts.filter((part): part is FileUIPart => part.type === "file") ?? [];
        void latest.current.sendMessage({ text, files, messageId });
      },
      choose: (messageId) => void call("setActiveLeaf", [messageId]).catch(() => undefined),
    }),
    [call],
  );

  const connection = useConnection(agent);
  const activity = activityOf(chat, requests);
  const failed = failureOf(chat);
  return {
    ...activity,
    messages: chat.messages,
    stopped: requests.stopped,
    status: statusOf(connection, activity, chat),
    connection,
    refused: chat.connectionError,
    recovering: chat.isRecovering,
    modelWaits: requests.modelWaits,
    error: failed,
    state: agent.state,
    call,
    actions,
    send: (text, files) => void chat.sendMessage({ text, files }),
    retry: () => void chat.regenerate(),
    stop: () => {
      const { running, open } = requests;
      // The hook stops the newest request; what runs may be an older one, or another tab's.
      if (running !== null && open.some((id) => id !== running)) {
        agent.send(JSON.stringify({ type: "cf_agent_chat_request_cancel", id: running }));
      } else void chat.stop();
    },
    clear: chat.clearHistory,
    dismissError: chat.clearError,
  };
}

type Chat = ReturnType<typeof useAgentChat>;

/** Asks the server for what is new instead of whole transcripts. */
const DECLARED = { thinkwell: "1" };

/** The socket of one conversation, and what is known of its requests. */
function useCompact(key: string): [CompactSocket, Requests] {
  const compact = useMemo(() => new CompactSocket(recall<string[]>(key, [])), [key]);
  const requests = useSyncExternalStore(compact.subscribe, compact.snapshot);
  const { stopped } = requests;
  useEffect(() => {
    if (stopped.size > 0) remember(key, [...stopped]);
  }, [key, stopped]);
  return [compact, requests];
}

interface Activity {
  busy: boolean;
  /** The next step is the person's. */
  asked: boolean;
  waiting: boolean;
}

function activityOf(chat: Chat, requests: Requests): Activity {
  const last = chat.messages.at(-1);
  const asked = chat.status !== "streaming" && !!last && asksThePerson(last);
  const sending = chat.status === "submitted" || chat.status === "streaming" || requests.open.length > 0;
  const busy = !asked && (sending || chat.isServerStreaming || chat.isToolContinuation || chat.isRecovering);
  const nothingYet = last?.role !== "assistant" || !last.parts.some(isVisible);
  const waiting = busy && (chat.status === "submitted" || nothingYet);
  return { busy, asked, waiting };
}

function asksThePerson(message: UIMessage): boolean {
  return message.parts.some((part) => {
    if (!isToolUIPart(part)) return false;
    return part.state === "approval-requested" || (part.state === "input-available" && getToolName(part) === ASK_USER);
  });
}

function statusOf(connection: Connection, { busy, asked }: Activity, chat: Chat): string {
  if (chat.connectionError) return "closed";
  if (connection !== "open") return connection === "lost" ? "reconnecting" : "connecting";
  if (chat.isRecovering) return "recovering";
  if (asked) return "waiting for you";
  if (busy) return "streaming";
  return failureOf(chat) ? "error" : "ready";
}

/** A dropped socket is not a failed answer: the server goes on, and the page takes it up again. */
function failureOf({ error }: Chat): Error | undefined {
  return error?.message.startsWith("WebSocket closed") ? undefined : error;
}
