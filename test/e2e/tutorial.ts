/** Runs every command of the section "On a cluster" of `manifests/README.md` on the node, unchanged and in order. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ensureBinaries } from "../cluster/binaries.ts";
import type { TestCluster } from "../cluster/node.ts";
import { say } from "./output.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const README = "manifests/README.md";
const SECTION = "## On a cluster\n";

/** Returns the commands of a section: the lines of its `sh` blocks, one block at a time. */
export function commandsOf(markdown: string, section: string): string[] {
  const text = markdown.split(`\n${section}`)[1]?.split(/\n## /)[0];
  assert.ok(text, `${README} has a section ${section.trim()}`);
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].flatMap(([, block]) => block!.trim().split("\n"));
}

export async function tutorial(cluster: TestCluster): Promise<void> {
  const { helm, kubectl } = await ensureBinaries(["helm", "kubectl"], { log: say });
  // The command longrun, as the page's first section installs it.
  const prefix = mkdtempSync(join(tmpdir(), "longrun-e2e-"));
  try {
    await promisify(execFile)("npm", ["install", "--global", "--prefix", prefix, "."], { cwd: ROOT });
    await runCommands(cluster, [join(prefix, "bin"), dirname(helm), dirname(kubectl)]);
  } finally {
    rmSync(prefix, { recursive: true });
  }
}

/** @param folders of programs, before those of PATH */
async function runCommands(cluster: TestCluster, folders: string[]): Promise<void> {
  const env = {
    ...process.env,
    KUBECONFIG: cluster.kubeconfig,
    PATH: [...folders, join(ROOT, "node_modules/.bin"), process.env.PATH].join(":"),
  };
  const commands = commandsOf(readFileSync(join(ROOT, README), "utf8"), SECTION);
  assert.ok(commands.length > 20, `${commands.length} commands`);
  // Files that the commands write here.
  const written = join(ROOT, "scaled-debug.tar.gz");
  rmSync(written, { force: true });
  for (const command of commands) {
    const start = performance.now();
    try {
      const { stdout } = await promisify(execFile)("bash", ["-o", "pipefail", "-c", command], { env, cwd: ROOT });
      say(`$ ${command}   # ${((performance.now() - start) / 1000).toFixed(1)} s`);
      say(stdout.trimEnd().split("\n").slice(-6).join("\n"));
    } catch (cause) {
      const { stderr, stdout } = cause as { stderr?: string; stdout?: string };
      throw new Error(`${README}: \`${command}\`: ${stderr?.trim()}\n${stdout ?? ""}`, { cause });
    }
  }
  assert.ok(statSync(written).size > 0);
  rmSync(written);
}
