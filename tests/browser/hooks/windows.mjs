// Pages without a browser: the same bundles in jsdom windows, on a WebSocket of Node.
// Reads one command per line from stdin; writes what each window shows, whenever that changes.
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { Script } from "node:vm";
import { JSDOM, VirtualConsole } from "jsdom";
import * as undici from "undici";
import ws from "ws";

const SOCKETS = { undici: undici.WebSocket, ws };
// What a page takes from Node: what jsdom does not have, and whatever belongs to the socket.
const PROVIDED = [
  "Event", "EventTarget", "MessageEvent", "AbortController", "AbortSignal", "process",
  "fetch", "Request", "Response", "Headers", "ReadableStream", "WritableStream", "TransformStream",
  "TextEncoder", "TextDecoder", "TextDecoderStream", "structuredClone", "setImmediate", "clearImmediate",
];

const scripts = new Map();
const windows = new Map();
const sockets = new Map();

function say(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

// The bundle as one function: a module that imports nothing, run in a window.
async function scriptOf(bundle) {
  if (!scripts.has(bundle)) {
    const source = await readFile(new URL(`dist/${bundle}.js`, import.meta.url), "utf8");
    scripts.set(bundle, new Script(`(async () => {${source}\n})()`, { filename: `${bundle}.js` }));
  }
  return scripts.get(bundle);
}

async function open({ tab, bundle, url, socket }) {
  close({ tab });
  const complain = (text) => say({ tab, problem: String(text) });
  const virtualConsole = new VirtualConsole();
  virtualConsole.on("error", (...said) => complain(said.join(" ")));
  virtualConsole.on("jsdomError", (error) => complain(error.stack));
  const dom = new JSDOM('<!doctype html><div id="root"></div>', {
    url,
    pretendToBeVisual: true,
    runScripts: "outside-only",
    virtualConsole,
  });
  const { window } = dom;
  window.InputEvent = window.Event;
  for (const name of PROVIDED) window[name] = globalThis[name];
  const opened = [];
  window.WebSocket = class extends SOCKETS[socket] {
    constructor(...address) {
      super(...address);
      opened.push(this);
    }
  };
  windows.set(tab, window);
  sockets.set(tab, opened);
  const tell = () => say({ tab, shows: look(window.document) });
  new window.MutationObserver(tell).observe(window.document, {
    attributes: true,
    characterData: true,
    childList: true,
    subtree: true,
  });
  const script = await scriptOf(bundle);
  script.runInContext(dom.getInternalVMContext()).catch((error) => complain(error.stack));
}

// As when a person closes the tab: its timers end, then its sockets.
function close({ tab }) {
  windows.get(tab)?.close();
  for (const socket of sockets.get(tab) ?? []) socket.close();
  windows.delete(tab);
  sockets.delete(tab);
}

function look(document) {
  const texts = (selector) => [...document.querySelectorAll(selector)].map((node) => node.textContent);
  return {
    bubbles: texts("article"),
    status: document.querySelector("[aria-label=Status]")?.textContent ?? "",
    alert: document.querySelector("[role=alert]")?.textContent ?? "",
    ends: document.querySelector("[aria-label=Ends]")?.textContent ?? "",
    buttons: texts("button"),
    connected: document.querySelector("[data-connected]") !== null,
  };
}

const commands = {
  open,
  press({ tab, name }) {
    const buttons = [...windows.get(tab).document.querySelectorAll("button")];
    buttons.find((button) => button.textContent === name).click();
  },
  write({ tab, words }) {
    const window = windows.get(tab);
    const field = window.document.querySelector("[aria-label=Message]");
    // As a person types it: React listens for the event and compares with what it set itself.
    Object.getOwnPropertyDescriptor(window.HTMLInputElement.prototype, "value").set.call(field, words);
    field.dispatchEvent(new window.InputEvent("input", { bubbles: true }));
  },
  run({ tab, run, script, argument }) {
    const evaluate = async () => {
      const value = windows.get(tab).eval(`(${script})`);
      return typeof value === "function" ? value(argument) : value;
    };
    // Not awaited: what it waits for may need another command.
    evaluate().then(
      (value) => say({ tab, run, value }),
      (error) => say({ tab, problem: String(error?.stack ?? error) }),
    );
  },
  close,
};

process.on("unhandledRejection", (error) => say({ problem: String(error?.stack ?? error) }));
for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...rest } = JSON.parse(line);
  await commands[command](rest);
}
process.exit(0);
