// Bundles one page per client library. The libraries are used as they are; only names are mapped.
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));

// The old line keeps its own `ai` and `agents`; all pages share React.
const bundles = {
  "ai-chat": { entry: "agent-chat.jsx", alias: { "chat-hook": "@cloudflare/ai-chat/react" } },
  think: { entry: "agent-chat.jsx", alias: { "chat-hook": "@cloudflare/think/react" } },
  old: {
    entry: "agent-chat.jsx",
    alias: {
      "chat-hook": "old-ai-chat/react",
      agents: "old-agents",
      ai: "old-ai",
      "@ai-sdk/react": "old-ai-sdk-react",
    },
  },
  "use-chat": { entry: "use-chat.jsx", alias: {} },
  client: { entry: "client.js", alias: {} },
};

for (const [name, { entry, alias }] of Object.entries(bundles)) {
  await build({
    entryPoints: { [name]: `${here}src/${entry}` },
    outdir: `${here}dist`,
    alias,
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    define: { "process.env.NODE_ENV": '"production"' },
    legalComments: "none",
    logLevel: "warning",
  });
}
