// One answer of the agent, from its first thought to its cost.
import { isToolUIPart } from "ai";
import { memo } from "react";
import { Branches } from "./Branches";
import { CopyButton } from "./CopyButton";
import { same, textOf, type Entry, type Part } from "./exchange";
import { Glyph } from "./icons";
import { useBranches, useInView, useTurnDetails, type TurnDetails } from "./lookups";
import { Markdown } from "./markdown/Markdown";
import { FilePart } from "./parts/FilePart";
import { Reasoning } from "./parts/Reasoning";
import { ToolCard, type ToolActions } from "./parts/ToolCard";
import { PartBoundary, Unreadable } from "./parts/Unreadable";
import { UNREADABLE } from "./shape";
import { inWords } from "./timing";

export interface EntryActions extends ToolActions {
  regenerate: (messageId: string) => void;
  edit: (messageId: string, text: string) => void;
  choose: (messageId: string) => void;
}

interface Props {
  entry: Entry;
  /** The last entry of the conversation. */
  newest: boolean;
  /** The agent works on something. */
  busy: boolean;
  actions: EntryActions;
}

export const Answer = memo(Shown, (before, after) => {
  const alike = before.newest === after.newest && before.busy === after.busy && before.actions === after.actions;
  return alike && same(before.entry, after.entry);
});

function Shown({ entry, newest, busy, actions }: Props) {
  const [ref, inView] = useInView<HTMLElement>();
  const details = useTurnDetails(entry.id, newest, inView);
  const versions = useBranches(entry, inView);
  const live = newest && busy;
  return (
    <article ref={ref} className="answer" aria-label="Assistant" aria-busy={live}>
      {entry.parts.map((part, index) => (
        <PartBoundary key={isToolUIPart(part) ? part.toolCallId : index} part={part}>
          <PartOf
            part={part}
            place={`${entry.id}:${index}`}
            details={details}
            live={live}
            last={index === entry.parts.length - 1}
            actions={actions}
          />
        </PartBoundary>
      ))}
      <footer className={live ? "working" : ""}>
        <CopyButton text={textOf(entry.parts)} label="Copy answer" />
        <button
          type="button"
          className="tiny"
          title="Regenerate"
          aria-label="Regenerate"
          disabled={busy}
          onClick={() => actions.regenerate(entry.id)}
        >
          <Glyph name="again" size={16} />
        </button>
        <Branches versions={versions} id={entry.id} disabled={busy} onChoose={actions.choose} />
        <Cost details={details} />
      </footer>
    </article>
  );
}

interface PartProps {
  part: Part;
  place: string;
  details: TurnDetails | null;
  live: boolean;
  last: boolean;
  actions: ToolActions;
}

/** Parts of kinds the page does not know are left out. */
function PartOf({ part, place, details, live, last, actions }: PartProps) {
  if (part.type === "text") return part.text ? <Markdown text={part.text} /> : null;
  if (part.type === "reasoning") {
    const thinking = live && (part.state === "streaming" || last);
    return part.text ? <Reasoning place={place} text={part.text} thinking={thinking} /> : null;
  }
  if (part.type === "file") return <FilePart file={part} />;
  if (part.type === "source-url") return <Source url={part.url} title={part.title ?? part.url} />;
  if (part.type === UNREADABLE) return <Unreadable />;
  if (!isToolUIPart(part)) return null;
  const tookMs = details?.tools[part.toolCallId]?.durationMs ?? undefined;
  return <ToolCard part={part} actions={actions} tookMs={tookMs} live={live} />;
}

function Source({ url, title }: { url: string; title: string }) {
  if (!/^https?:/.test(url)) return <span className="source">{title}</span>;
  return (
    <a className="source" href={url} target="_blank" rel="noopener noreferrer">
      {title}
    </a>
  );
}

function Cost({ details }: { details: TurnDetails | null }) {
  if (!details) return null;
  const { usage, durationMs, steps } = details;
  const shown = [
    typeof usage?.inputTokens === "number" && `${count(usage.inputTokens)} in`,
    typeof usage?.outputTokens === "number" && `${count(usage.outputTokens)} out`,
    typeof usage?.nanoUsd === "number" && dollars(usage.nanoUsd),
    typeof durationMs === "number" && inWords(durationMs),
  ].filter((each) => each !== false);
  if (shown.length === 0) return null;
  return (
    <span className="cost" aria-label="Usage" title={`Tokens in and out, cost if its price is known, time; ${steps} model ${steps === 1 ? "call" : "calls"}`}>
      {shown.join(" · ")}
    </span>
  );
}

/** Cents, and more digits where cents would say nothing. */
function dollars(nano: number): string {
  const usd = nano / 1e9;
  return usd > 0 && usd < 0.0001 ? "<$0.0001" : `$${usd.toFixed(usd >= 1 || usd === 0 ? 2 : 4)}`;
}

function count(tokens: number): string {
  return `${tokens.toLocaleString("en")} ${tokens === 1 ? "token" : "tokens"}`;
}
