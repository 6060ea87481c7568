// Which agent and which conversation is shown. It stands in the address bar, so that a reload, a
// bookmark and the back button work.
import { useSyncExternalStore } from "react";
import { agents } from "./settings";

export interface Place {
  agent: string;
  name: string;
}

const listeners = new Set<() => void>();
let current = read();

export function usePlace(): Place {
  return useSyncExternalStore(subscribe, () => current);
}

export function goTo(place: Place): void {
  if (place.agent === current.agent && place.name === current.name) return;
  history.pushState(null, "", address(place));
  refresh();
}

/** A link to a place; links can be opened in a new tab. */
export function address({ agent, name }: Place): string {
  return `?${new URLSearchParams({ agent, name })}`;
}

export function newName(): string {
  const random = crypto.getRandomValues(new Uint32Array(2));
  return `c-${[...random].map((number) => number.toString(36)).join("")}`;
}

function read(): Place {
  const query = new URLSearchParams(location.search);
  const agent = agents.find((each) => each === query.get("agent")) ?? agents[0] ?? "assistant";
  return { agent, name: query.get("name") || "default" };
}

function refresh(): void {
  current = read();
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

addEventListener("popstate", refresh);
