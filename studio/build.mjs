// Bundles the page into the Python package, where `thinkwell serve` finds it.
import { copyFile, mkdir } from "node:fs/promises";
import { build } from "esbuild";

const target = new URL("../src/thinkwell/server/page/", import.meta.url).pathname;

await mkdir(target, { recursive: true });
await build({
  entryPoints: { app: "src/main.jsx" },
  outdir: target,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  define: { "process.env.NODE_ENV": '"production"' },
  legalComments: "none",
  logLevel: "warning",
});
await copyFile("src/index.html", `${target}index.html`);
