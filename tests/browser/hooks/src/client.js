// `AgentClient` without React: the test drives it through `window.client`.
import { AgentClient } from "agents/client";
import * as settings from "./settings.js";

window.states = [];
window.refusals = [];
window.client = new AgentClient({
  agent: settings.agent,
  name: settings.name,
  prefix: settings.prefix,
  host: location.host,
  minReconnectionDelay: 50,
  maxReconnectionDelay: 200,
  query: settings.readonly ? { readonly: "1" } : undefined,
  onStateUpdate: (state, source) => window.states.push([state, source]),
  onStateUpdateError: (text) => window.refusals.push(text),
});

await window.client.ready;
document.getElementById("root").dataset.connected = "true";
