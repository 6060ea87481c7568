// Pages without a browser: the same bundles in jsdom windows, on a WebSocket of Node.
// One process serves many tests. A test connects and sends one command per line; it is told what
// each of its windows shows, whenever that changes. When it leaves, its windows are closed.
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { Script } from "node:vm";
import { JSDOM, VirtualConsole } from "jsdom";
import * as undici from "undici";
import ws from "ws";

// As in a browser, a socket opens a connection of its own; undici would take one that a fetch left open.
const dispatcher = new undici.Agent();
class UndiciSocket extends undici.WebSocket {
  constructor(address, protocols = []) {
    super(address, { protocols, dispatcher });
  }
}

const SOCKETS = { undici: UndiciSocket, ws };
// What a page takes from Node: what jsdom does not have, and whatever belongs to the socket.
const PROVIDED = [
  "Event", "EventTarget", "MessageEvent", "AbortController", "AbortSignal", "process",
  "Request", "Response", "Headers", "ReadableStream", "WritableStream", "TransformStream",
  "TextEncoder", "TextDecoder", "TextDecoderStream", "structuredClone", "setImmediate", "clearImmediate",
];

const scripts = new Map();
const tests = new Set();

// The bundle as one function: a module that imports nothing, run in a window.
async function scriptOf(bundle) {
  if (!scripts.has(bundle)) {
    const source = await readFile(new URL(`dist/${bundle}.js`, import.meta.url), "utf8");
    scripts.set(bundle, new Script(`(async () => {${source}\n})()`, { filename: `${bundle}.js` }));
  }
  return scripts.get(bundle);
}

function newWindow(url, socket, complain) {
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
  window.fetch = (address, options) => fetch(new URL(address, url), options);
  const opened = [];
  window.WebSocket = class extends SOCKETS[socket] {
    constructor(...address) {
      super(...address);
      opened.push(this);
    }
  };
  // As when a person closes the tab: its timers end, then its sockets.
  const close = () => {
    window.close();
    for (const each of opened) each.close();
  };
  return { window, close, context: dom.getInternalVMContext() };
}

function look(document) {
  const all = (selector) => [...document.querySelectorAll(selector)];
  // Spaces as a person sees them.
  const text = (node) => node.textContent.replace(/\s+/g, " ").trim();
  const texts = (selector) => all(selector).map(text);
  return {
    bubbles: texts("article"),
    labels: Object.fromEntries(all("output").map((node) => [node.getAttribute("aria-label"), text(node)])),
    alert: document.querySelector("[role=alert]")?.textContent ?? "",
    buttons: texts("button"),
    connected: document.querySelector("[data-connected]") !== null,
  };
}

class Test {
  constructor(line) {
    this.line = line;
    this.tabs = new Map();
  }

  // Python has no `undefined`.
  say(message) {
    if (this.line.writable) this.line.write(`${JSON.stringify(message, (_, value) => value ?? null)}\n`);
  }

  async open({ tab, opening, bundle, url, socket }) {
    this.close({ tab });
    // jsdom goes on to run what a closed window left behind; a browser does not.
    const complain = (text) => this.tabs.get(tab) === opened && this.say({ tab, opening, problem: String(text) });
    const opened = newWindow(url, socket, complain);
    this.tabs.set(tab, opened);
    const { document, MutationObserver } = opened.window;
    const tell = () => this.say({ tab, opening, shows: look(document) });
    const everything = { attributes: true, characterData: true, childList: true, subtree: true };
    new MutationObserver(tell).observe(document, everything);
    const script = await scriptOf(bundle);
    script.runInContext(opened.context).catch((error) => complain(error.stack));
  }

  press({ tab, name }) {
    const buttons = [...this.tabs.get(tab).window.document.querySelectorAll("button")];
    buttons.find((button) => button.textContent === name).click();
  }

  write({ tab, words }) {
    const { document, HTMLInputElement, InputEvent } = this.tabs.get(tab).window;
    const field = document.querySelector("[aria-label=Message]");
    // As a person types it: React listens for the event and compares with what it set itself.
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, words);
    field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  }

  run({ tab, opening, run, script, argument }) {
    const evaluate = async () => {
      const value = this.tabs.get(tab).window.eval(`(${script})`);
      return typeof value === "function" ? value(argument) : value;
    };
    // Not awaited: what it waits for may need another command.
    evaluate().then(
      (value) => this.say({ tab, opening, run, value }),
      (error) => this.say({ tab, opening, problem: String(error?.stack ?? error) }),
    );
  }

  close({ tab }) {
    const opened = this.tabs.get(tab);
    this.tabs.delete(tab);
    opened?.close();
  }

  leave() {
    for (const tab of [...this.tabs.keys()]) this.close({ tab });
    tests.delete(this);
  }
}

// What no window can be blamed for is told to every test there is.
const complainToAll = (error) => {
  for (const test of tests) test.say({ problem: String(error?.stack ?? error) });
};
process.on("unhandledRejection", complainToAll);
process.on("uncaughtException", complainToAll);

const server = createServer(async (line) => {
  const test = new Test(line);
  tests.add(test);
  line.on("error", () => test.leave());
  try {
    for await (const text of createInterface({ input: line })) {
      const { command, ...rest } = JSON.parse(text);
      await test[command](rest);
    }
  } catch (error) {
    test.say({ problem: String(error?.stack ?? error) });
  } finally {
    test.leave();
    line.end();
  }
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
// It lives as long as whoever started it.
process.stdin.on("end", () => process.exit(0)).resume();
