// What the transcript does not carry, asked from the agent when an entry comes into view: other
// versions of a message, and what a turn cost. An agent that cannot answer just shows neither.
import { createContext, useContext, useEffect, useRef, useState, type RefObject } from "react";

export type Call = <T>(method: string, args: unknown[]) => Promise<T>;

export interface TurnDetails {
  status: string;
  steps: number;
  usage: { inputTokens?: number | null; outputTokens?: number | null; nanoUsd?: number | null } | null;
  durationMs: number | null;
  tools: Record<string, { durationMs: number | null }>;
}

/** How to ask, and whether the agent is at rest, so that an answer stays true. */
export const Asking = createContext<{ call: Call; resting: boolean }>({
  call: () => Promise.reject(new Error("not connected")),
  resting: false,
});

/** Ids of all versions of this message, oldest first. */
export function useBranches(entry: { id: string; parent: string | null }, inView: boolean): string[] {
  const { id, parent } = entry;
  const { call, resting } = useContext(Asking);
  const [versions, setVersions] = useState<string[]>([]);
  const known = versions.includes(id);
  useEffect(() => {
    if (!resting || !inView || known) return;
    let current = true;
    call<{ id: string }[] | null>("getBranches", [parent])
      .then((messages) => current && setVersions((messages ?? []).map((message) => message.id)))
      .catch(() => undefined);
    return () => {
      current = false;
    };
  }, [call, resting, inView, known, id, parent]);
  return known ? versions : [];
}

/** Tokens and times of the turn behind an answer; asked again when the newest answer has changed. */
export function useTurnDetails(id: string, newest: boolean, inView: boolean): TurnDetails | null {
  const { call, resting } = useContext(Asking);
  const [found, setFound] = useState<{ id: string; details: TurnDetails | null }>();
  const settled = found?.id === id && !newest;
  useEffect(() => {
    if (!id || !resting || !inView || settled) return;
    let current = true;
    call<TurnDetails | null>("getTurnDetails", [id])
      .then((details) => current && setFound({ id, details }))
      .catch(() => undefined);
    return () => {
      current = false;
    };
  }, [call, resting, inView, settled, id]);
  return found?.id === id ? found.details : null;
}

/** True from the moment the element was first near the visible part of the page. */
export function useInView<E extends Element>(): [RefObject<E | null>, boolean] {
  const ref = useRef<E>(null);
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    if (seen || !ref.current) return;
    const observer = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && setSeen(true),
      { rootMargin: "200px" },
    );
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, [seen]);
  return [ref, seen];
}
