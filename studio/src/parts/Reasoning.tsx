// What the model thought before it spoke: one quiet line, the whole of it on demand.
import { memo } from "react";
import { Glyph } from "../icons";
import { inWords, useElapsed } from "../timing";

interface Props {
  /** Where the thought stands, to remember how long it took. */
  place: string;
  text: string;
  thinking: boolean;
}

export const Reasoning = memo(function Reasoning({ place, text, thinking }: Props) {
  const elapsed = useElapsed(`thought:${place}`, thinking);
  const done = elapsed === undefined ? "Thoughts" : `Thought for ${inWords(elapsed)}`;
  return (
    <details className="reasoning">
      <summary>
        <Glyph name="thought" size={16} />
        <span className={thinking ? "live" : ""}>{thinking ? "Thinking…" : done}</span>
        {thinking && <span className="tail">{lastWords(text)}</span>}
        <Glyph name="chevron" size={14} />
      </summary>
      <div className="thought">{text}</div>
    </details>
  );
});

function lastWords(text: string): string {
  const line = text.trimEnd().split("\n").at(-1) ?? "";
  return line.length > 90 ? `…${line.slice(-90)}` : line;
}
