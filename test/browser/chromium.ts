/** A real browser for tests: Debian's `chromium`, or what CHROMIUM names. */
import { execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { isExecutable } from "../cluster/binaries.ts";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];
/** A page that never ends to load. */
const LOAD_SECONDS = 60;

/** @returns undefined where there is none */
export function findChromium(): string | undefined {
  const folders = (process.env.PATH ?? "").split(delimiter);
  const candidates = [process.env.CHROMIUM, ...NAMES.flatMap((name) => folders.map((folder) => join(folder, name)))];
  return candidates.find((path) => path && isExecutable(path));
}

/** @returns the page's DOM as HTML once it has loaded, and what runs at once has run */
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

async function withProfile<T>(work: (flags: string[]) => Promise<T>): Promise<T> {
  const profile = mkdtempSync(join(tmpdir(), "longrun-chromium-"));
  try {
    // Chromium's own sandbox refuses to be root's.
    const sandbox = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
    const quiet = ["--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"];
    return await work(["--headless=new", ...sandbox, ...quiet, `--user-data-dir=${profile}`]);
  } finally {
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
