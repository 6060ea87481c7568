// Colours for code, by one pass of one pattern per family of languages. Not a parser: it knows
// comments, strings, numbers and common words, which is what the eye looks for.
export interface Token {
  kind: "comment" | "string" | "number" | "word" | "plain";
  text: string;
}

const MOST = 20_000;

const WORDS = {
  python:
    "False None True and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return self try while with yield",
  script:
    "abstract as async await boolean break case catch class const continue default delete do else enum export extends false finally for from function if implements import in instanceof interface let new null number of package private protected public readonly return static string super switch this throw true try type typeof undefined unknown var void while yield",
  c: "auto bool break case chan char class const continue default defer do double else enum false final float fn for func go if impl import in int interface let long loop match mod move mut namespace new nil null override package pub public private range return self short signed static struct super switch template this throw trait true try type union unsigned use using var virtual void where while",
  shell: "case cd do done echo elif else esac exit export fi for function if in local return set source then until while",
  sql: "all and as asc between by case create delete desc distinct drop else end exists from full group having in index inner insert into is join left like limit not null on or order outer primary right select set table then union update values when where with",
  data: "true false null",
} as const;

type Family = keyof typeof WORDS;

const FAMILIES: Record<string, Family> = Object.fromEntries(
  (
    [
      ["python", "py python python3 pycon"],
      ["script", "js jsx ts tsx javascript typescript mjs cjs"],
      ["c", "c h cpp cc cs csharp java go rust rs swift kotlin kt scala php dart"],
      ["shell", "sh bash zsh shell console"],
      ["sql", "sql sqlite postgres postgresql mysql"],
      ["data", "json jsonc yaml yml toml ini css"],
    ] as [Family, string][]
  ).flatMap(([family, names]) => names.split(" ").map((name) => [name, family])),
);

const STRING = String.raw`"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|${"`"}(?:\\.|[^${"`"}\\])*${"`"}`;
const NUMBER = String.raw`\b\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?\b`;
const patterns = new Map<Family, RegExp>();

export function tokensOf(code: string, language: string): Token[] {
  const family = FAMILIES[language.toLowerCase()];
  if (!family || code.length > MOST) return [{ kind: "plain", text: code }];
  const tokens: Token[] = [];
  let end = 0;
  for (const match of code.matchAll(patternOf(family))) {
    if (match.index > end) tokens.push({ kind: "plain", text: code.slice(end, match.index) });
    tokens.push({ kind: kindOf(match), text: match[0] });
    end = match.index + match[0].length;
  }
  tokens.push({ kind: "plain", text: code.slice(end) });
  return tokens;
}

function kindOf({ groups }: RegExpMatchArray): Token["kind"] {
  const kinds = ["comment", "string", "number", "word"] as const;
  return kinds.find((kind) => groups?.[kind] !== undefined) ?? "plain";
}

function patternOf(family: Family): RegExp {
  const made = patterns.get(family);
  if (made) return made;
  const words = String.raw`\b(?:${WORDS[family].replaceAll(" ", "|")})\b`;
  const source = `(?<comment>${commentOf(family)})|(?<string>${STRING})|(?<number>${NUMBER})|(?<word>${words})`;
  const pattern = new RegExp(source, family === "sql" ? "gi" : "g");
  patterns.set(family, pattern);
  return pattern;
}

function commentOf(family: Family): string {
  if (family === "sql") return String.raw`--[^\n]*|\/\*[\s\S]*?\*\/`;
  if (family === "c" || family === "script") return String.raw`\/\/[^\n]*|\/\*[\s\S]*?\*\/`;
  return String.raw`(?<![\w$&])#[^\n]*`;
}
