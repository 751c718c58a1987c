/**
 * `npm run plugin`: makes `kubectl-longrun`, one file for Node >= 20.19, which kubectl finds on PATH.
 *
 *     node controller/plugin/bundle.ts [FILE]      default: dist/kubectl-longrun
 */
import { chmodSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { build } from "esbuild";
import { makeFolder } from "../../proto/folders.ts";

const ROOT = join(import.meta.dirname, "../..");

/** Node decides by the package.json above it, if any, whether a file without an extension is CommonJS or a module. */
const REQUIRE =
  'var require = typeof require === "function" ? require : process.getBuiltinModule("module").createRequire(process.argv[1]);';

/** The oldest Node version that every bundled package supports. */
const OLDEST_NODE = [20, 19];

/** Checked before anything is loaded, because on an older Node the client fails with a stack trace. */
const CHECK =
  `var node = process.versions.node.split(".").map(Number); ` +
  `if (node[0] < ${OLDEST_NODE[0]} || (node[0] === ${OLDEST_NODE[0]} && node[1] < ${OLDEST_NODE[1]})) { ` +
  `console.error("kubectl longrun needs Node ${OLDEST_NODE.join(".")} or newer, and node on PATH is " + process.versions.node + ": install a newer one (https://nodejs.org)"); ` +
  "process.exit(1); }";

/** @throws Error if the sources cannot be bundled */
export async function bundle(file: string): Promise<void> {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
  makeFolder(dirname(file));
  await build({
    entryPoints: [join(import.meta.dirname, "kubectl-longrun.ts")],
    outfile: file,
    bundle: true,
    platform: "node",
    target: "node20",
    format: "cjs",
    alias: { "whatwg-url": join(import.meta.dirname, "whatwg-url.ts") },
    minify: true,
    // Names in stack traces and `error.name` stay readable.
    keepNames: true,
    legalComments: "none",
    banner: { js: `#!/usr/bin/env node\n${CHECK}\n${REQUIRE}` },
    define: { LONGRUN_VERSION: JSON.stringify(version) },
    logLevel: "warning",
  });
  chmodSync(file, 0o755);
}

if (import.meta.main) {
  const file = resolve(process.argv[2] ?? join(ROOT, "dist/kubectl-longrun"));
  await bundle(file);
  process.stdout.write(`${file}\n`);
}
