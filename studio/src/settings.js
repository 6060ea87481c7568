// What the server wrote into the page, and what the address bar adds.
const element = document.getElementById("settings");
const written = element ? JSON.parse(element.textContent) : {};
const query = new URLSearchParams(location.search);

export const agents = written.agents?.length ? written.agents : ["assistant"];
export const prefix = `${written.root ?? ""}/${written.prefix ?? "agents"}`.replace(/^\/+/, "");
export const firstAgent = agents.includes(query.get("agent")) ? query.get("agent") : agents[0];
export const name = query.get("name") || "default";
