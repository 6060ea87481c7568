// The whole page: conversations at the side, one of them in the middle.
import { Component, Suspense, useCallback, useState, type ReactNode } from "react";
import { Chat } from "./Chat";
import { useConversations } from "./conversations";
import { Header } from "./Header";
import { usePlace } from "./place";
import { Sidebar } from "./Sidebar";

export function Page() {
  const place = usePlace();
  const conversations = useConversations(place);
  const [drawer, setDrawer] = useState(false);
  const [state, setState] = useState<unknown>();
  const close = useCallback(() => setDrawer(false), []);
  const menu = useCallback(() => setDrawer(true), []);
  const key = `${place.agent}/${place.name}`;
  return (
    <div className="page">
      <Sidebar place={place} list={conversations.list} open={drawer} onClose={close} state={state} />
      <div className="rest" inert={drawer}>
        <Mishap key={key}>
          <Suspense fallback={<Loading onMenu={menu} />}>
            <Chat place={place} conversations={conversations} onMenu={menu} onState={setState} />
          </Suspense>
        </Mishap>
      </div>
    </div>
  );
}

function Loading({ onMenu }: { onMenu: () => void }) {
  return (
    <main className="chat">
      <Header title="" status="connecting" canClear={false} onClear={() => undefined} onMenu={onMenu} />
      <div className="view" />
    </main>
  );
}

/** If the page itself breaks, the conversation is still safe on the server: say so. */
class Mishap extends Component<{ children: ReactNode }, { broken: boolean }> {
  override state = { broken: false };

  static getDerivedStateFromError(): { broken: boolean } {
    return { broken: true };
  }

  override render(): ReactNode {
    if (!this.state.broken) return this.props.children;
    return (
      <main className="chat broken">
        <div className="notice bad" role="alert">
          <p>This page ran into a mistake of its own. The conversation is safe on the server.</p>
          <button type="button" onClick={() => location.reload()}>
            Reload
          </button>
        </div>
      </main>
    );
  }
}
