// ‹ 2/3 › — the versions of a message.
import { Glyph } from "./icons";

interface Props {
  versions: readonly string[];
  id: string;
  disabled: boolean;
  onChoose: (id: string) => void;
}

export function Branches({ versions, id, disabled, onChoose }: Props) {
  const at = versions.indexOf(id);
  if (versions.length < 2 || at < 0) return null;
  const previous = versions[at - 1];
  const next = versions[at + 1];
  return (
    <span className="branches" role="group" aria-label="Versions">
      <Step label="Previous version" icon="left" id={previous} disabled={disabled} onChoose={onChoose} />
      <span aria-live="polite">
        {at + 1}/{versions.length}
      </span>
      <Step label="Next version" icon="right" id={next} disabled={disabled} onChoose={onChoose} />
    </span>
  );
}

interface StepProps {
  label: string;
  icon: "left" | "right";
  id: string | undefined;
  disabled: boolean;
  onChoose: (id: string) => void;
}

function Step({ label, icon, id, disabled, onChoose }: StepProps) {
  return (
    <button
      type="button"
      className="tiny"
      aria-label={label}
      disabled={disabled || id === undefined}
      onClick={() => id !== undefined && onChoose(id)}
    >
      <Glyph name={icon} size={16} />
    </button>
  );
}
