// A part that cannot be shown: one quiet line instead of a broken page.
import { Component, type ReactNode } from "react";

export function Unreadable() {
  return <p className="unreadable">A part of this message cannot be shown.</p>;
}

interface Props {
  /** Something new to show is worth another try. */
  part: unknown;
  children: ReactNode;
}

/** Whatever goes wrong while a part is drawn stays inside that part. */
export class PartBoundary extends Component<Props, { failed: unknown }> {
  override state = { failed: undefined };

  static getDerivedStateFromError(): { failed: unknown } {
    return { failed: null };
  }

  override componentDidUpdate(before: Props): void {
    if (this.state.failed !== undefined && before.part !== this.props.part) this.setState({ failed: undefined });
  }

  override render(): ReactNode {
    return this.state.failed === undefined ? this.props.children : <Unreadable />;
  }
}
