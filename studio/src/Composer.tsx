// Where a message is written: text, files by picking, pasting or dropping, and the stop button.
import type { FileUIPart } from "ai";
import { useEffect, useRef, useState, type ClipboardEvent, type FormEvent, type KeyboardEvent } from "react";
import { ACCEPTED } from "./attachments";
import { Glyph } from "./icons";
import { FilePart } from "./parts/FilePart";


interface Props {
  agent: string;
  busy: boolean;
  files: FileUIPart[];
  onFiles: (files: readonly File[]) => void;
  onRemove: (index: number) => void;
  onSend: (text: string) => void;
  onStop: () => void;
}

export function Composer({ agent, busy, files, onFiles, onRemove, onSend, onStop }: Props) {
  const [text, setText] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  const ready = text.trim() !== "" || files.length > 0;

  // On a phone the keyboard would cover half of the page before anything was read.
  useEffect(() => {
    if (!matchMedia("(pointer: coarse)").matches) field.current?.focus();
  }, []);

  function submit(event: FormEvent): void {
    event.preventDefault();
    if (!ready) return;
    onSend(text.trim());
    setText("");
    field.current?.focus();
  }

  function onKeyDown(event: KeyboardEvent): void {
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) submit(event);
  }

  function onPaste(event: ClipboardEvent): void {
    const pasted = [...event.clipboardData.files];
    if (pasted.length === 0) return;
    event.preventDefault();
    onFiles(pasted);
  }

  return (
    <form className="composer" onSubmit={submit} aria-label="New message">
      {files.length > 0 && (
        <div className="files" role="group" aria-label="Attached files">
          {files.map((file, index) => (
            <FilePart key={index} file={file} onRemove={() => onRemove(index)} />
          ))}
        </div>
      )}
      <div className="line">
        <PickFiles onFiles={onFiles} />
        <textarea
          ref={field}
          aria-label="Message"
          placeholder={`Message ${agent}`}
          rows={1}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
        />
        {busy && (
          <button type="button" className="round stop" onClick={onStop} title="Stop (Esc)" aria-label="Stop">
            <Glyph name="stop" />
          </button>
        )}
        {(!busy || ready) && (
          <button type="submit" className="round primary" disabled={!ready} title="Send (Enter)" aria-label="Send">
            <Glyph name="send" />
          </button>
        )}
      </div>
    </form>
  );
}

function PickFiles({ onFiles }: { onFiles: Props["onFiles"] }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        accept={ACCEPTED}
        multiple
        hidden
        aria-label="Files"
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
      <button
        type="button"
        className="round"
        title="Attach files"
        aria-label="Attach files"
        onClick={() => input.current?.click()}
      >
        <Glyph name="clip" />
      </button>
    </>
  );
}
