// A file in a message: pictures are shown, the rest is named.
import type { FileUIPart } from "ai";
import { Glyph } from "../icons";

interface Props {
  file: FileUIPart;
  onRemove?: () => void;
}

export function FilePart({ file, onRemove }: Props) {
  const name = file.filename ?? file.mediaType;
  return (
    <figure className="file">
      {showable(file) ? (
        <img src={file.url} alt={name} />
      ) : (
        <span className="named">
          <Glyph name="file" />
          <span>{name}</span>
        </span>
      )}
      {onRemove && (
        <button type="button" className="remove" onClick={onRemove} aria-label={`Remove ${name}`}>
          <Glyph name="close" size={14} />
        </button>
      )}
    </figure>
  );
}

/** Only pictures that are here already; one from elsewhere would tell its server who reads this. */
function showable(file: FileUIPart): boolean {
  return file.mediaType.startsWith("image/") && file.url.startsWith("data:");
}
