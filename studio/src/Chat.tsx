// One conversation on the screen.
import type { FileUIPart } from "ai";
import { useCallback, useEffect, useMemo, useState, type DragEvent } from "react";
import { attach } from "./attachments";
import { Composer } from "./Composer";
import type { Conversations } from "./conversations";
import { useConversing } from "./conversing";
import { textOf } from "./exchange";
import { Header } from "./Header";
import { Asking } from "./lookups";
import { Notices } from "./Notices";
import type { Place } from "./place";
import { Transcript } from "./Transcript";
import { Welcome } from "./Welcome";

interface Props {
  place: Place;
  conversations: Conversations;
  onMenu: () => void;
  onState: (state: unknown) => void;
}

export function Chat({ place, conversations, onMenu, onState }: Props) {
  const { refresh, touch } = conversations;
  const chat = useConversing(place, refresh);
  const { busy, stop, call, state } = chat;
  const attached = useAttached();
  const [sent, setSent] = useState(0);
  const resting = !busy && chat.connection === "open";
  const asking = useMemo(() => ({ call, resting }), [call, resting]);
  const title = titleOf(chat.messages);

  useEscape(busy, stop);
  useEffect(() => onState(state), [state, onState]);
  useEffect(() => {
    document.title = title ? `${title} · Thinkwell` : "Thinkwell";
  }, [title]);

  function send(text: string, files: FileUIPart[] = attached.files): void {
    attached.clear();
    touch(title || text);
    chat.send(text, files);
    setSent((count) => count + 1);
  }

  return (
    <main className="chat" {...attached.dropping}>
      <Header
        title={title || "New conversation"}
        status={chat.status}
        canClear={chat.messages.length > 0}
        onClear={() => {
          chat.clear();
          refresh();
        }}
        onMenu={onMenu}
      />
      <Asking value={asking}>
        <Transcript
          messages={chat.messages}
          busy={busy}
          waiting={chat.waiting}
          stopped={chat.stopped}
          actions={chat.actions}
          sent={sent}
          empty={<Welcome agent={place.agent} onTry={(text) => send(text, [])} />}
        />
      </Asking>
      <Notices
        agent={place.agent}
        connection={chat.connection}
        refused={chat.refused}
        recovering={chat.recovering}
        modelWaits={chat.modelWaits}
        error={chat.error}
        problem={attached.problem}
        onRetry={chat.retry}
        onDismiss={() => {
          chat.dismissError();
          attached.forgive();
        }}
      />
      <Composer
        agent={place.agent}
        busy={busy}
        files={attached.files}
        onFiles={attached.add}
        onRemove={attached.remove}
        onSend={send}
        onStop={stop}
      />
      {attached.over && <div className="drop">Drop files to attach them</div>}
    </main>
  );
}

function titleOf(messages: { role: string; parts: Parameters<typeof textOf>[0] }[]): string {
  const first = messages.find((message) => message.role === "user");
  return first ? textOf(first.parts).slice(0, 80) : "";
}

/** Escape stops the answer, unless it has something nearer to close. */
function useEscape(busy: boolean, stop: () => void): void {
  useEffect(() => {
    if (!busy) return;
    const onKey = (event: KeyboardEvent) => {
      const taken = event.defaultPrevented || document.querySelector("dialog[open], .sidebar.open");
      if (event.key === "Escape" && !taken) stop();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [busy, stop]);
}

/** Files picked, pasted or dropped, until the message is sent. */
function useAttached() {
  const [files, setFiles] = useState<FileUIPart[]>([]);
  const [problem, setProblem] = useState("");
  const [over, setOver] = useState(false);

  const add = useCallback(
    (chosen: readonly File[]) => {
      setProblem("");
      attach(chosen, files).then(setFiles, (error: Error) => setProblem(error.message));
    },
    [files],
  );

  const dropping = {
    onDragOver: (event: DragEvent) => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      setOver(true);
    },
    onDragLeave: (event: DragEvent) => {
      if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
    },
    onDrop: (event: DragEvent) => {
      if (event.dataTransfer.files.length === 0) return;
      event.preventDefault();
      setOver(false);
      add([...event.dataTransfer.files]);
    },
  };

  return {
    files,
    problem,
    over,
    dropping,
    add,
    remove: (index: number) => setFiles(files.filter((_, each) => each !== index)),
    clear: () => {
      setFiles([]);
      setProblem("");
    },
    forgive: () => setProblem(""),
  };
}
