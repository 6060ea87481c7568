// Plain `useChat` over HTTP: no socket, no hooks of ours in between.
import { useChat } from "@ai-sdk/react";
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} from "ai";
import { Frame, show } from "./frame.jsx";
import * as settings from "./settings.js";
import { clientTools, tools } from "./tools.js";

const address = `/${settings.prefix}/${settings.agent}/${settings.name}`;
const stored = await (await fetch(`${address}/get-messages`)).json();
const transport = new DefaultChatTransport({ api: `${address}/chat`, body: { clientTools } });

function Page() {
  const chat = useChat({
    id: settings.name,
    messages: stored,
    transport,
    resume: true,
    sendAutomaticallyWhen: (at) =>
      lastAssistantMessageIsCompleteWithToolCalls(at) || lastAssistantMessageIsCompleteWithApprovalResponses(at),
    onToolCall: ({ toolCall }) => {
      if (toolCall.toolName !== "get_place") return;
      const { toolName: tool, toolCallId } = toolCall;
      chat.addToolOutput({ tool, toolCallId, output: tools.get_place.execute() });
    },
  });
  // The turn outlives the request, so stopping it is a request of its own.
  const stop = () => fetch(`${address}/chat/stop`, { method: "POST" });
  return (
    <div data-connected>
      <Frame chat={chat} flags={{}} onStop={stop} />
    </div>
  );
}

show(Page);
