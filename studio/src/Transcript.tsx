// The conversation, which follows the stream until the reader scrolls up.
import type { UIMessage } from "ai";
import { useEffect, useMemo, type ReactNode } from "react";
import { Answer, type EntryActions } from "./Answer";
import { Asked } from "./Asked";
import { entriesOf, isVisible, type Entry } from "./exchange";
import { useFollow } from "./follow";
import { Glyph } from "./icons";

interface Props {
  messages: readonly UIMessage[];
  busy: boolean;
  /** Accepted, but nothing of the answer is there yet. */
  waiting: boolean;
  /** Questions that were stopped, by message id. */
  stopped: ReadonlySet<string>;
  actions: EntryActions;
  /** Grows with each message sent from here: the view goes to the end. */
  sent: number;
  empty: ReactNode;
}

export function Transcript({ messages, busy, waiting, stopped, actions, sent, empty }: Props) {
  const { box, content, following, toEnd } = useFollow();
  const entries = useMemo(() => entriesOf(messages), [messages]);

  useEffect(() => toEnd(), [sent, toEnd]);

  return (
    <div className="view">
      <div ref={box} className="scroll" role="log" aria-label="Conversation" aria-busy={busy} tabIndex={0}>
        <div ref={content} className="column">
          {entries.length === 0 && !waiting && empty}
          {entries.map((entry, index) => {
            const newest = index === entries.length - 1;
            if (newest && waiting && !entry.parts.some(isVisible)) return null;
            // By place, not by id: ids change when the server stores a message.
            if (entry.role === "assistant") {
              return <Answer key={index} entry={entry} newest={newest} busy={busy} actions={actions} />;
            }
            const unanswered = stopped.has(entry.id) && !isAnswer(entries[index + 1]);
            return <Asked key={index} entry={entry} unanswered={unanswered} busy={busy} actions={actions} />;
          })}
          {waiting && (
            <p className="waiting" aria-label="Waiting for the answer">
              <i />
              <i />
              <i />
            </p>
          )}
        </div>
      </div>
      {!following && (
        <button type="button" className="jump" onClick={toEnd}>
          <Glyph name="down" size={16} />
          Jump to latest
        </button>
      )}
    </div>
  );
}

function isAnswer(entry: Entry | undefined): boolean {
  return entry?.role === "assistant" && entry.parts.some(isVisible);
}
