// What the server wrote into the page: which agents there are and where they live.
interface Written {
  agents?: string[];
  prefix?: string;
  root?: string;
  problems?: Record<string, string>;
  suggestions?: Record<string, Record<string, string>>;
}

const element = document.getElementById("settings");
const written = (element ? JSON.parse(element.textContent || "{}") : {}) as Written;

/** Path the app is mounted at, without a slash at its end. */
export const root = written.root ?? "";
/** Names of the agents as they stand in addresses. */
export const agents: readonly string[] = written.agents?.length ? written.agents : ["assistant"];
/** Things to say first to an agent: title and text. */
export const suggestionsFor = (agent: string): [string, string][] => Object.entries(written.suggestions?.[agent] ?? {});
/** Why an agent cannot answer, as far as the server knew when it started: its model, or a key, is missing. */
export const problemOf = (agent: string): string => written.problems?.[agent] ?? "";
/** First part of every agent's path. */
export const prefix = `${root}/${written.prefix ?? "agents"}`.replace(/^\/+/, "");
