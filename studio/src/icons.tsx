// Line icons, drawn here so that the page asks nobody for anything.
import type { ReactNode } from "react";

function Icon({ children, size = 18 }: { children: ReactNode; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.8"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      {children}
    </svg>
  );
}

const paths = {
  menu: <path d="M4 7h16M4 12h16M4 17h10" />,
  plus: <path d="M12 5v14M5 12h14" />,
  close: <path d="M6 6l12 12M18 6L6 18" />,
  send: <path d="M12 19V5M6 11l6-6 6 6" />,
  stop: <rect x="7" y="7" width="10" height="10" rx="1.5" fill="currentColor" />,
  clip: <path d="M20 11.5l-8.2 8.2a5 5 0 01-7.1-7.1l8.5-8.5a3.3 3.3 0 014.7 4.7l-8.5 8.5a1.7 1.7 0 01-2.4-2.4l7.8-7.8" />,
  copy: (
    <>
      <rect x="9" y="9" width="11" height="11" rx="2.5" />
      <path d="M5 15H4.5A1.5 1.5 0 013 13.5V5a2 2 0 012-2h8.5A1.5 1.5 0 0115 4.5V5" />
    </>
  ),
  check: <path d="M5 12.5l4.5 4.5L19 7.5" />,
  again: <path d="M20 11a8 8 0 10-2.3 6.3M20 5v6h-6" />,
  pencil: <path d="M4 20l1-4L16.5 4.5a2.1 2.1 0 013 3L8 19l-4 1zM14 7l3 3" />,
  left: <path d="M14.5 6l-6 6 6 6" />,
  right: <path d="M9.5 6l6 6-6 6" />,
  down: <path d="M12 5v14M6 13l6 6 6-6" />,
  chevron: <path d="M9 6l6 6-6 6" />,
  trash: <path d="M4 7h16M10 7V4.5h4V7M6 7l1 13h10l1-13" />,
  sun: (
    <>
      <circle cx="12" cy="12" r="4" />
      <path d="M12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21M5.6 5.6l1.1 1.1M17.3 17.3l1.1 1.1M5.6 18.4l1.1-1.1M17.3 6.7l1.1-1.1" />
    </>
  ),
  moon: <path d="M20 14.5A8 8 0 019.5 4a8 8 0 1010.5 10.5z" />,
  screen: (
    <>
      <rect x="3" y="5" width="18" height="12" rx="2" />
      <path d="M9 20.5h6" />
    </>
  ),
  tool: <path d="M14.7 6.3a4 4 0 00-5.2 5.2L4 17l3 3 5.5-5.5a4 4 0 005.2-5.2L15 12l-3-3 2.7-2.7z" />,
  thought: <path d="M12 4a6 6 0 00-3.5 10.9c.6.5 1 1.2 1 2.1h5c0-.9.4-1.6 1-2.1A6 6 0 0012 4zM10 20.5h4" />,
  file: <path d="M13.5 3H7a2 2 0 00-2 2v14a2 2 0 002 2h10a2 2 0 002-2V8.5L13.5 3zM13 3.5V9h5.5" />,
  alert: <path d="M12 4l9 16H3l9-16zM12 10v4.5M12 17.3v.1" />,
} satisfies Record<string, ReactNode>;

export type IconName = keyof typeof paths;

export function Glyph({ name, size }: { name: IconName; size?: number }) {
  return <Icon {...(size ? { size } : {})}>{paths[name]}</Icon>;
}
