// Copies a text and says so for a moment.
import { useEffect, useState } from "react";
import { Glyph } from "./icons";

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 2000);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <button type="button" className="tiny" title={label} onClick={() => void copy(text).then(() => setCopied(true))}>
      <Glyph name={copied ? "check" : "copy"} size={16} />
      <span className="hidden" aria-live="polite">
        {copied ? "Copied" : label}
      </span>
    </button>
  );
}

async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Over plain http from another machine there is no clipboard object.
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}
