// Small things kept in the browser. A browser that keeps nothing (private mode) is fine, too.
export function recall<T>(key: string, otherwise: T): T {
  try {
    const text = localStorage.getItem(`thinkwell:${key}`);
    return text === null ? otherwise : (JSON.parse(text) as T);
  } catch {
    return otherwise;
  }
}

export function remember(key: string, value: unknown): void {
  try {
    localStorage.setItem(`thinkwell:${key}`, JSON.stringify(value));
  } catch {
    // Nothing depends on it.
  }
}
