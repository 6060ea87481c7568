// The list beside the chat: the server's, or what this browser remembers if the server has none.
import { useCallback, useEffect, useMemo, useState } from "react";
import type { Place } from "./place";
import { recall, remember } from "./remember";
import { root } from "./settings";

export interface Conversation {
  name: string;
  title: string;
  updatedAt: number;
}

export interface Conversations {
  list: Conversation[];
  /** Ask the server again. */
  refresh: () => void;
  /** Note that something was said here. */
  touch: (title: string) => void;
}

const KEPT = 50;

export function useConversations(place: Place): Conversations {
  const { agent, name } = place;
  const key = `conversations:${agent}`;
  const [local, setLocal] = useState(() => recall<Conversation[]>(key, []));
  const [served, setServed] = useState<Conversation[] | null>(null);
  const [asked, setAsked] = useState(0);
  const refresh = useCallback(() => setAsked((count) => count + 1), []);

  useEffect(() => {
    setLocal(recall<Conversation[]>(key, []));
    setServed(null);
  }, [key]);

  useEffect(() => {
    const stop = new AbortController();
    void ask(agent, stop.signal).then((list) => {
      if (!stop.signal.aborted && list !== undefined) setServed(list);
    });
    return () => stop.abort();
  }, [agent, asked]);

  const touch = useCallback(
    (title: string) => {
      const rest = recall<Conversation[]>(key, []).filter((each) => each.name !== name);
      const next = [{ name, title, updatedAt: Date.now() / 1000 }, ...rest].slice(0, KEPT);
      remember(key, next);
      setLocal(next);
    },
    [key, name],
  );

  const list = useMemo(() => withCurrent(served ?? local, local, name), [served, local, name]);
  return { list, refresh, touch };
}

function withCurrent(list: Conversation[], local: Conversation[], name: string): Conversation[] {
  if (list.some((each) => each.name === name)) return list;
  const known = local.find((each) => each.name === name);
  return [known ?? { name, title: "", updatedAt: Date.now() / 1000 }, ...list];
}

/** The server's list; null if it keeps none; undefined if it cannot be asked now. */
async function ask(agent: string, signal: AbortSignal): Promise<Conversation[] | null | undefined> {
  const url = `${root}/_thinkwell/conversations?${new URLSearchParams({ agent })}`;
  try {
    const response = await fetch(url, { signal });
    if (!response.ok) return null;
    const body: unknown = await response.json();
    return Array.isArray(body) ? (body as Conversation[]) : null;
  } catch {
    return undefined;
  }
}

const DAY = 86_400;

/** When, in a word or two. */
export function ago(updatedAt: number, now = Date.now() / 1000): string {
  const seconds = Math.max(0, now - updatedAt);
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < DAY) return `${Math.floor(seconds / 3600)} h`;
  if (seconds < 7 * DAY) return `${Math.floor(seconds / DAY)} d`;
  return new Date(updatedAt * 1000).toLocaleDateString(undefined, { month: "short", day: "numeric" });
}
