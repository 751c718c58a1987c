/** A real browser for tests: Debian's `chromium`, or the program that CHROMIUM names. */
import { execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { isExecutable } from "../cluster/binaries.ts";
import { findTool } from "../tools.ts";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];
/** Longest wait for a page to load. */
const LOAD_SECONDS = 60;

/** @returns undefined if there is no browser */
export function findChromium(): string | undefined {
  const candidates = [process.env.CHROMIUM, ...NAMES.map((name) => findTool(name))];
  return candidates.find((path) => path && isExecutable(path));
}

/** @returns the page's DOM as HTML once it has loaded and its first scripts have run */
export async function dumpDom(chromium: string, url: string): Promise<string> {
  return withProfile(async (flags) => {
    const options = { timeout: LOAD_SECONDS * 1000, maxBuffer: 2 ** 28 };
    const { stdout } = await promisify(execFile)(chromium, [...flags, "--timeout=3000", "--dump-dom", url], options);
    return stdout;
  });
}

export async function screenshot(chromium: string, url: string, file: string, size: string): Promise<void> {
  await withProfile((flags) =>
    promisify(execFile)(chromium, [...flags, `--window-size=${size}`, `--screenshot=${file}`, url], {
      timeout: LOAD_SECONDS * 1000,
    }),
  );
}

/** Waits for two frames: boxes that scroll have their timelines then. */
const TWO_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))";

/** A page that tests examine by the browser's own protocol, to which a page's Content-Security-Policy does not apply. */
export interface Page {
  /** Resolves when the page has loaded at this width, CSS pixels, in light or dark. */
  open(url: string, width: number, scheme: "light" | "dark"): Promise<void>;
  /** Returns the result of a script in the page, as JSON. */
  evaluate(script: string): Promise<unknown>;
}

export async function withPage<T>(chromium: string, work: (page: Page) => Promise<T>): Promise<T> {
  return withProfile(async (flags, profile) => {
    const browser = spawn(chromium, [...flags, "--remote-debugging-port=0", "about:blank"], { stdio: "ignore" });
    const gone = new Promise((resolve) => browser.once("exit", resolve));
    try {
      const port = await portOf(join(profile, "DevToolsActivePort"));
      const targets = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as {
        type: string;
        webSocketDebuggerUrl: string;
      }[];
      const socket = new WebSocket(targets.find(({ type }) => type === "page")!.webSocketDebuggerUrl);
      await new Promise((resolve, reject) => {
        socket.onopen = resolve;
        socket.onerror = () => reject(new Error("the browser's page does not answer"));
      });
      return await work(pageOf(socket));
    } finally {
      browser.kill();
      await gone;
    }
  });
}

function pageOf(socket: WebSocket): Page {
  const answers = new Map<number, (answer: Answer) => void>();
  let loaded = () => {};
  let id = 0;
  socket.onmessage = ({ data }) => {
    const answer = JSON.parse(String(data)) as Answer;
    if (answer.method === "Page.loadEventFired") loaded();
    answers.get(answer.id ?? 0)?.(answer);
  };
  const call = async (method: string, params: object = {}) => {
    const answer = await new Promise<Answer>((resolve) => {
      answers.set(++id, resolve);
      socket.send(JSON.stringify({ id, method, params }));
    });
    if (answer.error || answer.result?.exceptionDetails)
      throw new Error(`${method}: ${JSON.stringify(answer.error ?? answer.result?.exceptionDetails)}`);
    return answer.result!;
  };
  return {
    open: async (url, width, scheme) => {
      await call("Page.enable");
      await call("Emulation.setDeviceMetricsOverride", { width, height: 900, deviceScaleFactor: 1, mobile: false });
      await call("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
      const load = new Promise<void>((resolve) => {
        loaded = resolve;
      });
      await call("Page.navigate", { url });
      await load;
      await call("Runtime.evaluate", { expression: TWO_FRAMES, awaitPromise: true });
    },
    evaluate: async (script) => {
      const { result } = await call("Runtime.evaluate", { expression: script, returnByValue: true });
      return result!.value;
    },
  };
}

interface Answer {
  id?: number;
  method?: string;
  error?: object;
  result?: { result?: { value: unknown }; exceptionDetails?: object };
}

async function portOf(file: string): Promise<string> {
  for (let tries = 0; tries < 10 * LOAD_SECONDS; tries++) {
    const [port] = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
    if (port) return port;
    await sleep(100);
  }
  throw new Error(`the browser has not written its port to ${file}`);
}

/** A window that stays open while `work` waits. */
export async function withWindow(chromium: string, url: string, work: () => Promise<void>): Promise<void> {
  await withProfile(async (flags) => {
    const window = spawn(chromium, [...flags, "--remote-debugging-port=0", url], { stdio: "ignore" });
    const gone = new Promise((resolve) => window.once("exit", resolve));
    try {
      await work();
    } finally {
      window.kill();
      await gone;
    }
  });
}

async function withProfile<T>(work: (flags: string[], profile: string) => Promise<T>): Promise<T> {
  const profile = mkdtempSync(join(tmpdir(), "longrun-chromium-"));
  try {
    // Chromium's own sandbox refuses to run as root.
    const sandbox = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
    const quiet = ["--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"];
    return await work(["--headless=new", ...sandbox, ...quiet, `--user-data-dir=${profile}`], profile);
  } finally {
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
