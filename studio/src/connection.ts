// Is the agent reachable? Before the first contact, while it lasts, and after it was lost.
import type { UIMessage } from "ai";
import { useEffect, useState } from "react";
import { readMessages } from "./shape";

export type Connection = "connecting" | "open" | "lost";

interface Socket {
  readyState: number;
  addEventListener: (type: "open" | "close", listener: () => void) => void;
  removeEventListener: (type: "open" | "close", listener: () => void) => void;
}

export function useConnection(socket: Socket): Connection {
  const [connection, setConnection] = useState<Connection>("connecting");
  useEffect(() => {
    const onOpen = () => setConnection("open");
    const onClose = () => setConnection((before) => (before === "connecting" ? before : "lost"));
    if (socket.readyState === WebSocket.OPEN) onOpen();
    socket.addEventListener("open", onOpen);
    socket.addEventListener("close", onClose);
    return () => {
      socket.removeEventListener("open", onOpen);
      socket.removeEventListener("close", onClose);
    };
  }, [socket]);
  return connection;
}

/** The stored transcript. A server that is away is asked again: the page waits for it. */
export async function loadMessages({ url }: { url?: string }): Promise<UIMessage[]> {
  if (!url) return [];
  const address = new URL(url);
  address.pathname += "/get-messages";
  for (let pause = 500; ; pause = Math.min(pause * 2, 5000)) {
    try {
      const response = await fetch(address);
      if (!response.ok) return [];
      return readMessages(await response.json());
    } catch {
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
}
