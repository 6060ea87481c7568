// Builds the page into the Python package, where `thinkwell serve` finds it.
//
// Three files with fixed names and relative addresses: the server reads them once, writes its
// settings into index.html, and can be mounted under any path.
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

// The page waits for its script, so that a remembered theme is there from the first paint.
const paintWithTheTheme: Plugin = {
  name: "paint-with-the-theme",
  transformIndexHtml: {
    order: "post",
    handler: (html) => html.replace('<script type="module"', '<script type="module" blocking="render"'),
  },
};

export default defineConfig({
  base: "./",
  plugins: [react(), paintWithTheTheme],
  build: {
    outDir: "../src/thinkwell/server/page",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    chunkSizeWarningLimit: 2000,
    rollupOptions: {
      output: {
        entryFileNames: "app.js",
        assetFileNames: "app[extname]",
        codeSplitting: false,
      },
    },
  },
});
