// Title, state and the few things that concern the conversation as a whole.
import { useRef } from "react";
import { Glyph } from "./icons";

interface Props {
  title: string;
  status: string;
  canClear: boolean;
  onClear: () => void;
  onMenu: () => void;
}

export function Header({ title, status, canClear, onClear, onMenu }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  return (
    <header className="top">
      <button type="button" className="round drawer-only" aria-label="Conversations" onClick={onMenu}>
        <Glyph name="menu" />
      </button>
      <h2 title={title}>{title}</h2>
      <output className="status" data-status={status} aria-label="Status">
        {status}
      </output>
      <button type="button" className="quiet" disabled={!canClear} onClick={() => dialog.current?.showModal()}>
        <Glyph name="trash" size={16} />
        <span>Clear</span>
      </button>
      <dialog ref={dialog} aria-labelledby="clear-title">
        <form method="dialog">
          <h2 id="clear-title">Clear this conversation?</h2>
          <p>All messages and their other versions are deleted, here and on the server.</p>
          <div className="buttons">
            <button autoFocus>Keep it</button>
            <button className="primary danger" onClick={onClear}>
              Clear conversation
            </button>
          </div>
        </form>
      </dialog>
    </header>
  );
}
