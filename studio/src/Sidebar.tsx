// Conversations, agents, and what the agent keeps as its state.
import { useEffect, useRef, type MouseEvent } from "react";
import { ago, type Conversation } from "./conversations";
import { Glyph } from "./icons";
import { address, goTo, newName, type Place } from "./place";
import { agents } from "./settings";
import { ThemeSwitch } from "./ThemeSwitch";

interface Props {
  place: Place;
  list: Conversation[];
  /** On narrow screens the list is a drawer. */
  open: boolean;
  onClose: () => void;
  state: unknown;
}

export function Sidebar({ place, list, open, onClose, state }: Props) {
  const closeButton = useRef<HTMLButtonElement>(null);

  useEffect(() => {
    if (!open) return;
    const before = document.activeElement;
    closeButton.current?.focus();
    const onKey = (event: KeyboardEvent) => event.key === "Escape" && onClose();
    addEventListener("keydown", onKey);
    return () => {
      removeEventListener("keydown", onKey);
      if (before instanceof HTMLElement) before.focus();
    };
  }, [open, onClose]);

  function visit(target: Place): void {
    onClose();
    goTo(target);
  }

  return (
    <>
      {open && <div className="shade" onClick={onClose} />}
      <aside className={open ? "sidebar open" : "sidebar"} aria-label="Conversations">
        <div className="brand">
          <span className="mark" aria-hidden="true" />
          <h1>Thinkwell</h1>
          <button ref={closeButton} type="button" className="round drawer-only" aria-label="Close the list" onClick={onClose}>
            <Glyph name="close" />
          </button>
        </div>
        <AgentPicker place={place} onPick={(agent) => visit({ agent, name: "default" })} />
        <button type="button" className="new" onClick={() => visit({ agent: place.agent, name: newName() })}>
          <Glyph name="plus" size={16} />
          New conversation
        </button>
        <nav aria-label="Conversations">
          <ul>
            {list.map((each) => (
              <Row key={each.name} place={place} conversation={each} onVisit={visit} />
            ))}
          </ul>
        </nav>
        {state !== undefined && state !== null && (
          <details className="state-panel">
            <summary>
              <Glyph name="chevron" size={14} />
              State of the agent
            </summary>
            <pre tabIndex={0} aria-label="State">
              {JSON.stringify(state, null, 2)}
            </pre>
          </details>
        )}
        <ThemeSwitch />
      </aside>
    </>
  );
}

interface RowProps {
  place: Place;
  conversation: Conversation;
  onVisit: (place: Place) => void;
}

function Row({ place, conversation, onVisit }: RowProps) {
  const { name, title, updatedAt } = conversation;
  const target = { agent: place.agent, name };
  const here = name === place.name;

  function onClick(event: MouseEvent): void {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    onVisit(target);
  }

  return (
    <li>
      <a href={address(target)} aria-current={here ? "page" : undefined} onClick={onClick}>
        <span className="title">{title || (name === "default" ? "First conversation" : "New conversation")}</span>
        <time>{ago(updatedAt)}</time>
      </a>
    </li>
  );
}

function AgentPicker({ place, onPick }: { place: Place; onPick: (agent: string) => void }) {
  if (agents.length < 2) return null;
  return (
    <select aria-label="Agent" value={place.agent} onChange={(event) => onPick(event.target.value)}>
      {agents.map((each) => (
        <option key={each}>{each}</option>
      ))}
    </select>
  );
}
