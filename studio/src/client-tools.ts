// Tools that run in this page: the agent asks, the browser answers. They are declared to the agent
// with every message, so that an agent that has never heard of this page can use them.
import type { AITool, OnToolCallCallback } from "@cloudflare/ai-chat/react";
import { chooseTheme, known, shownTheme } from "./theme";

/** Answered by a person, in its card. */
export const ASK_USER = "ask_user";

export const CLIENT_TOOLS: Record<string, AITool> = {
  get_browser_info: {
    description: "The time zone, local time, language, colour theme and window size of the person's browser.",
    parameters: { type: "object", properties: {} },
    execute: () => ({
      timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      localTime: new Date().toLocaleString(),
      language: navigator.language,
      theme: shownTheme(),
      window: `${innerWidth} × ${innerHeight}`,
    }),
  },
  set_theme: {
    description: "Switches this page to light or dark colours, or back to what the system prefers.",
    parameters: {
      type: "object",
      properties: { theme: { type: "string", enum: ["light", "dark", "system"] } },
      required: ["theme"],
    },
    execute: (input) => {
      chooseTheme(known((input as { theme?: unknown } | undefined)?.theme));
      return { theme: shownTheme() };
    },
  },
  [ASK_USER]: {
    description: "Asks the person a question and waits for the answer.",
    parameters: {
      type: "object",
      properties: {
        question: { type: "string" },
        options: { type: "array", items: { type: "string" }, description: "Answers to choose from." },
      },
      required: ["question"],
    },
    // Only a tool with a function is declared to the agent. The card calls it off (see below).
    execute: () => undefined,
  },
};

/** Runs a declared tool; a question to the person waits in its card. */
export const runClientTool: OnToolCallCallback = async ({ toolCall, addToolOutput }) => {
  const { toolCallId, toolName, input } = toolCall;
  const tool = CLIENT_TOOLS[toolName];
  if (!tool?.execute || toolName === ASK_USER) return;
  try {
    addToolOutput({ toolCallId, output: await tool.execute(input) });
  } catch (error) {
    const errorText = error instanceof Error ? error.message : String(error);
    addToolOutput({ toolCallId, state: "output-error", errorText });
  }
};
