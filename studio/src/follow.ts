// The view follows the stream until the reader scrolls up, and again once they are back at the end.
import { useCallback, useEffect, useRef, useState, type RefObject } from "react";

const NEAR_END = 32;

export interface Follow {
  box: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  /** False while the reader looks at something earlier. */
  following: boolean;
  toEnd: () => void;
}

export function useFollow(): Follow {
  const box = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const [following, setFollowing] = useState(true);

  const toEnd = useCallback(() => {
    follows.current = true;
    setFollowing(true);
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, []);

  useEffect(() => {
    const view = box.current;
    const inner = content.current;
    if (!view || !inner) return;
    let top = view.scrollTop;
    const onScroll = () => {
      const atEnd = view.scrollHeight - view.scrollTop - view.clientHeight < NEAR_END;
      // Content that shrinks also moves the view up, but then the view is at the end.
      if (atEnd) follows.current = true;
      else if (view.scrollTop < top) follows.current = false;
      top = view.scrollTop;
      setFollowing(follows.current);
    };
    const onGrowth = () => {
      if (follows.current) view.scrollTop = view.scrollHeight;
    };
    const observer = new ResizeObserver(onGrowth);
    observer.observe(inner);
    observer.observe(view);
    view.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      observer.disconnect();
      view.removeEventListener("scroll", onScroll);
    };
  }, []);

  return { box, content, following, toEnd };
}
