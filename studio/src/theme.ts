// Light or dark: the system's choice until the reader makes one, which is then remembered.
import { useSyncExternalStore } from "react";
import { recall, remember } from "./remember";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();
let chosen: Theme = known(recall<unknown>("theme", "system"));

/** What is on the screen now. */
export function shownTheme(): "light" | "dark" {
  if (chosen !== "system") return chosen;
  return systemIsDark.matches ? "dark" : "light";
}

export function chooseTheme(theme: Theme): void {
  chosen = theme;
  remember("theme", theme);
  apply();
}

export function known(value: unknown): Theme {
  return THEMES.find((theme) => theme === value) ?? "system";
}

export function useTheme(): { chosen: Theme; shown: "light" | "dark" } {
  const both = useSyncExternalStore(subscribe, () => `${chosen} ${shownTheme()}`);
  const [theme, shown] = both.split(" ") as [Theme, "light" | "dark"];
  return { chosen: theme, shown };
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function apply(): void {
  document.documentElement.dataset["theme"] = shownTheme();
  for (const listener of listeners) listener();
}

systemIsDark.addEventListener("change", apply);
apply();
