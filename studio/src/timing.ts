// How long things took, as far as this page has watched them: thoughts and tool calls.
import { useEffect, useState } from "react";

interface Watch {
  from: number;
  took?: number;
}

const watches = new Map<string, Watch>();

/** Milliseconds since the page saw it begin, growing while it runs; undefined if it was over before. */
export function useElapsed(key: string, running: boolean): number | undefined {
  const [, tick] = useState(0);
  const watch = look(key, running);
  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => tick((count) => count + 1), 1000);
    return () => clearInterval(timer);
  }, [running]);
  return watch && (watch.took ?? Date.now() - watch.from);
}

function look(key: string, running: boolean): Watch | undefined {
  const watch = watches.get(key);
  if (running && !watch) watches.set(key, { from: Date.now() });
  else if (watch && !running && watch.took === undefined) watch.took = Date.now() - watch.from;
  else if (watch && running) delete watch.took;
  return watches.get(key);
}

/** "40 ms", "0.4 s", "12 s", "2 min 5 s". */
export function inWords(milliseconds: number): string {
  if (milliseconds < 95) return `${Math.max(1, Math.round(milliseconds))} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
