// Cuts markdown into blocks that can be shown one by one, so that a growing answer is parsed only
// where it grows. Code at the left edge becomes a block of its own and never meets the parser.
export type Block =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string; language: string; open: boolean };

const FENCE = /^( *)(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const LIST_ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;
const DEFINITION = /^ {0,3}\[[^\]]+\]:\s+\S+/;

/** A line with more marks than this, or a block, is no markdown that anybody wrote. */
const MOST_MARKS = { line: 400, block: 2500 };
const LONGEST_BLOCK = 200_000;
/** The information after a fence is a word or two; a long line would be searched again and again. */
const LONGEST_FENCE = 500;

/**
 * Whether the parser would take too long: marks are paired with each other, so its time grows with
 * the square of their number. Such a block is shown as it is.
 */
export function isTooDense(text: string): boolean {
  if (text.length > LONGEST_BLOCK) return true;
  let inLine = 0;
  let inBlock = 0;
  for (let place = 0; place < text.length; place++) {
    const mark = text.charCodeAt(place);
    if (mark === NEW_LINE) inLine = 0;
    else if (MARKS.has(mark) && (++inLine > MOST_MARKS.line || ++inBlock > MOST_MARKS.block)) return true;
  }
  return false;
}

const NEW_LINE = 10;
const MARKS = new Set([..."*_~`[<>\\"].map((mark) => mark.charCodeAt(0)));

export function blocksOf(markdown: string): Block[] {
  const reader = new Reader();
  for (const line of markdown.split("\n")) reader.read(line);
  return reader.finish();
}

interface Fence {
  mark: string;
  language: string;
  /** Indented code belongs to the list item it stands in. */
  inside: boolean;
  lines: string[];
}

class Reader {
  private readonly blocks: Block[] = [];
  private readonly definitions: string[] = [];
  private lines: string[] = [];
  private fence: Fence | null = null;
  private blank = false;

  read(line: string): void {
    if (this.fence) this.readCode(line, this.fence);
    else if (!line.trim()) this.readBlank();
    else this.readText(line);
  }

  finish(): Block[] {
    const { fence } = this;
    if (fence && !fence.inside) {
      this.blocks.push({ kind: "code", text: fence.lines.join("\n"), language: fence.language, open: true });
    }
    this.endText();
    if (this.definitions.length === 0) return this.blocks;
    const known = `\n\n${this.definitions.join("\n")}`;
    return this.blocks.map((block) =>
      block.kind === "text" && block.text.includes("[") ? { ...block, text: block.text + known } : block,
    );
  }

  private readCode(line: string, fence: Fence): void {
    const closes = line.trim().startsWith(fence.mark) && /^[`~]+\s*$/.test(line.trim());
    if (fence.inside) this.lines.push(line);
    else if (closes) {
      this.blocks.push({ kind: "code", text: fence.lines.join("\n"), language: fence.language, open: false });
    } else fence.lines.push(line);
    if (closes) this.fence = null;
  }

  private readBlank(): void {
    this.blank = true;
    if (this.lines.length > 0) this.lines.push("");
  }

  private readText(line: string): void {
    const fence = line.length > LONGEST_FENCE ? null : FENCE.exec(line);
    const continues = this.inList() && (/^\s{2,}/.test(line) || LIST_ITEM.test(line));
    if (this.blank && !continues) this.endText();
    this.blank = false;
    if (DEFINITION.test(line)) this.definitions.push(line);
    if (!fence) {
      this.lines.push(line);
      return;
    }
    const [, indent = "", mark = "", language = ""] = fence;
    const inside = continues && indent.length > 0;
    if (inside) this.lines.push(line);
    else this.endText();
    this.fence = { mark, language, inside, lines: [] };
  }

  private inList(): boolean {
    return this.lines.length > 0 && LIST_ITEM.test(this.lines[0] ?? "");
  }

  private endText(): void {
    const text = this.lines.join("\n").trimEnd();
    if (text) this.blocks.push({ kind: "text", text });
    this.lines = [];
  }
}
