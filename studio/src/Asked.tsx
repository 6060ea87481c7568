// What the person said, and a place to say it differently.
import type { FileUIPart } from "ai";
import { memo, useEffect, useRef, useState } from "react";
import type { EntryActions } from "./Answer";
import { Branches } from "./Branches";
import { CopyButton } from "./CopyButton";
import { same, textOf, type Entry } from "./exchange";
import { Glyph } from "./icons";
import { useBranches, useInView } from "./lookups";
import { FilePart } from "./parts/FilePart";

interface Props {
  entry: Entry;
  /** It was stopped before there was anything of an answer. */
  unanswered: boolean;
  busy: boolean;
  actions: EntryActions;
}

export const Asked = memo(Shown, (before, after) => {
  const alike = before.unanswered === after.unanswered && before.busy === after.busy;
  return alike && before.actions === after.actions && same(before.entry, after.entry);
});

function Shown({ entry, unanswered, busy, actions }: Props) {
  const [ref, inView] = useInView<HTMLElement>();
  const [edited, setEdited] = useState<string>();
  const versions = useBranches(entry, inView);
  const text = textOf(entry.parts);
  const files = entry.parts.filter((part): part is FileUIPart => part.type === "file");
  const editing = edited === entry.id;
  return (
    <article ref={ref} className="asked" aria-label={entry.role === "user" ? "You" : "System"}>
      {files.length > 0 && (
        <div className="files">
          {files.map((file, index) => (
            <FilePart key={index} file={file} />
          ))}
        </div>
      )}
      {editing ? (
        <Editor
          text={text}
          onCancel={() => setEdited(undefined)}
          onSave={(changed) => {
            setEdited(undefined);
            actions.edit(entry.id, changed);
          }}
        />
      ) : (
        text && <div className="bubble">{text}</div>
      )}
      {unanswered && <p className="unanswered">Not answered: you stopped it.</p>}
      <footer>
        <Branches versions={versions} id={entry.id} disabled={busy} onChoose={actions.choose} />
        <CopyButton text={text} label="Copy message" />
        <button
          type="button"
          className="tiny"
          title="Edit"
          aria-label="Edit"
          disabled={busy || editing}
          onClick={() => setEdited(entry.id)}
        >
          <Glyph name="pencil" size={16} />
        </button>
      </footer>
    </article>
  );
}

interface EditorProps {
  text: string;
  onSave: (text: string) => void;
  onCancel: () => void;
}

function Editor({ text, onSave, onCancel }: EditorProps) {
  const [value, setValue] = useState(text);
  const field = useRef<HTMLTextAreaElement>(null);
  const ready = value.trim() !== "" && value.trim() !== text.trim();

  useEffect(() => {
    field.current?.focus();
    field.current?.setSelectionRange(text.length, text.length);
  }, [text]);

  function onKeyDown(event: React.KeyboardEvent): void {
    if (event.key === "Escape") {
      event.stopPropagation();
      onCancel();
    }
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault();
      if (ready) onSave(value.trim());
    }
  }

  return (
    <div className="editor">
      <textarea
        ref={field}
        aria-label="Edit message"
        value={value}
        onChange={(event) => setValue(event.target.value)}
        onKeyDown={onKeyDown}
      />
      <div className="buttons">
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
        <button type="button" className="primary" disabled={!ready} onClick={() => onSave(value.trim())}>
          Save and send
        </button>
      </div>
    </div>
  );
}
