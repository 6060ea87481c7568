// Markdown that grows: finished blocks are never looked at again.
import { memo, type ComponentProps, type ReactElement } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { blocksOf, isTooDense } from "./blocks";
import { CodeBlock } from "./CodeBlock";

const PLUGINS = [remarkGfm];

const COMPONENTS: Components = {
  a: ({ href, children }) => (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  ),
  // Pictures from elsewhere would tell other servers what is being read.
  img: ({ src, alt }) => (
    <a href={typeof src === "string" ? src : undefined} target="_blank" rel="noopener noreferrer">
      {alt || "image"}
    </a>
  ),
  pre: ({ children }) => <Fenced>{children}</Fenced>,
  table: ({ children }) => (
    <div className="table" tabIndex={0} role="region" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
};

/** Code inside a list or a quotation, which the block reader leaves to the parser. */
function Fenced({ children }: ComponentProps<"pre">) {
  const { className = "", children: code } = (children as ReactElement<ComponentProps<"code">>).props;
  const language = /language-(\S+)/.exec(className)?.[1] ?? "";
  return <CodeBlock code={String(code ?? "").replace(/\n$/, "")} language={language} />;
}

const TextBlock = memo(function TextBlock({ text }: { text: string }) {
  if (isTooDense(text)) return <p className="plain">{text}</p>;
  return (
    <ReactMarkdown remarkPlugins={PLUGINS} components={COMPONENTS}>
      {text}
    </ReactMarkdown>
  );
});

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  return (
    <div className="prose">
      {blocksOf(text).map((block, index) =>
        block.kind === "code" ? (
          <CodeBlock key={index} code={block.text} language={block.language} open={block.open} />
        ) : (
          <TextBlock key={index} text={block.text} />
        ),
      )}
    </div>
  );
});
