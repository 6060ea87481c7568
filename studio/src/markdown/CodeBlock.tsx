// A block of code with its language and a button to copy it.
import { memo } from "react";
import { CopyButton } from "../CopyButton";
import { tokensOf } from "./highlight";

interface Props {
  code: string;
  language: string;
  /** Still growing: colours come when it is complete. */
  open?: boolean;
}

export const CodeBlock = memo(function CodeBlock({ code, language, open = false }: Props) {
  return (
    <figure className="code">
      <figcaption>
        <span className="language">{language || "text"}</span>
        <CopyButton text={code} label="Copy code" />
      </figcaption>
      <pre tabIndex={0} aria-label={`${language || "text"} code`}>
        <code>{open ? code : <Coloured code={code} language={language} />}</code>
      </pre>
    </figure>
  );
});

function Coloured({ code, language }: { code: string; language: string }) {
  return tokensOf(code, language).map(({ kind, text }, index) =>
    kind === "plain" ? (
      text
    ) : (
      <span key={index} className={`t-${kind}`}>
        {text}
      </span>
    ),
  );
}
