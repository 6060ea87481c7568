// What stands between the transcript and the composer when something is not as it should be.
import { Glyph } from "./icons";
import type { Connection } from "./connection";
import { problemOf } from "./settings";

interface Props {
  agent: string;
  connection: Connection;
  /** The connection was closed for good. */
  refused: { code: number; reason: string } | null;
  recovering: boolean;
  modelWaits: string | null;
  error: Error | undefined;
  problem: string;
  onRetry: () => void;
  onDismiss: () => void;
}

export function Notices({ agent, connection, refused, recovering, modelWaits, error, problem, onRetry, onDismiss }: Props) {
  return (
    <div className="notices">
      {problemOf(agent) && (
        <div className="notice bad setup" role="alert">
          <Glyph name="alert" />
          <p>
            <strong>{agent} cannot answer yet.</strong> {problemOf(agent)} Then start the server again.
          </p>
        </div>
      )}
      {refused && (
        <div className="notice bad" role="alert">
          <Glyph name="alert" />
          <p>
            The server closed this conversation: {refused.reason || `code ${refused.code}`}.
          </p>
        </div>
      )}
      {!refused && connection === "lost" && (
        <div className="notice" role="status">
          <span className="spinner" />
          <p>Connection lost. Reconnecting… Nothing is lost: the answer goes on when the server is back.</p>
        </div>
      )}
      {recovering && (
        <div className="notice" role="status">
          <span className="spinner" />
          <p>The server was interrupted and is taking up this answer again…</p>
        </div>
      )}
      {modelWaits && (
        <div className="notice" role="status">
          <span className="spinner" />
          <p>Waiting for a free slot of {modelWaits}…</p>
        </div>
      )}
      {error && (
        <div className="notice bad" role="alert">
          <Glyph name="alert" />
          <p>{error.message || "Something went wrong."}</p>
          <button type="button" onClick={onRetry}>
            Try again
          </button>
          <button type="button" className="tiny" aria-label="Dismiss the error" onClick={onDismiss}>
            <Glyph name="close" size={16} />
          </button>
        </div>
      )}
      {problem && (
        <div className="notice bad" role="alert">
          <Glyph name="alert" />
          <p>{problem}</p>
          <button type="button" className="tiny" aria-label="Dismiss the problem" onClick={onDismiss}>
            <Glyph name="close" size={16} />
          </button>
        </div>
      )}
    </div>
  );
}
