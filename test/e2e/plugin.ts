/** Tests `kubectl longrun` as users install it: one file on PATH, found by kubectl. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { bundle } from "../../controller/plugin/bundle.ts";
import type { TestCluster } from "../cluster/node.ts";
import type { Kubectl } from "./kubectl.ts";
import { say } from "./output.ts";

export class Plugin {
  readonly folder = mkdtempSync(join(tmpdir(), "longrun-plugin-"));
  readonly #kubectl: string;
  readonly #namespace: string;
  readonly #options: { cwd: string; env: NodeJS.ProcessEnv };

  private constructor({ kubectl, kubeconfig }: TestCluster, namespace: string) {
    this.#kubectl = kubectl;
    this.#namespace = namespace;
    const path = [this.folder, dirname(process.execPath), process.env.PATH].join(delimiter);
    this.#options = { cwd: this.folder, env: { ...process.env, PATH: path, KUBECONFIG: kubeconfig } };
  }

  static async make(cluster: TestCluster, namespace: string): Promise<Plugin> {
    const plugin = new Plugin(cluster, namespace);
    await bundle(join(plugin.folder, "kubectl-longrun"));
    return plugin;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** @returns stdout. @throws Error with stderr */
  async run(...args: string[]): Promise<string> {
    const all = ["longrun", ...args, "--namespace", this.#namespace];
    return (await promisify(execFile)(this.#kubectl, all, { ...this.#options, maxBuffer: 2 ** 28 })).stdout;
  }

  /** Runs the command, calls `work` with its first line, then sends Ctrl-C. */
  async during(args: string[], work: (line: string) => Promise<void>): Promise<void> {
    const all = ["longrun", ...args, "--namespace", this.#namespace];
    const child = spawn(this.#kubectl, all, { ...this.#options, stdio: ["ignore", "pipe", "inherit"] });
    const exited = once(child, "exit");
    try {
      const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
      await work(line);
    } finally {
      child.kill("SIGINT");
      await exited;
    }
  }
}

/** Tests commands while the learner runs. */
export async function lookAtRunning(plugin: Plugin, run: string): Promise<void> {
  say(await plugin.run("status", run, "--once"));
  const lines = (await plugin.run("logs", run, "--tail", "3")).trim().split("\n");
  assert.equal(lines.length, 3);
  assert.equal((JSON.parse(lines[0]!) as { run: string }).run, `training/${run}`);
  await plugin.during(["report", run, "--live"], async (line) => {
    const address = line.split(" ")[0]!;
    const response = await fetch(address);
    const page = await response.text();
    say(`${address}: ${response.status}, ${page.length} characters, refresh ${response.headers.get("refresh")}`);
    assert.match(page, /UTC · iteration \d+ of 100 · /);
    assert.match(response.headers.get("content-security-policy") ?? "", /sandbox/);
  });
  await pullModel(plugin, run);
  await assert.rejects(plugin.run("pull", run, "run"), /pause other first, or pull model or best/);
}

/** Tests commands after the run's end, which read the volume. */
export async function lookAtFinished(plugin: Plugin, kubectl: Kubectl, run: string): Promise<void> {
  const best = await plugin.run("best", run);
  say(best.split("\n")[0]!);
  assert.match(
    best,
    /^# MAE [\d.]+ · (iteration \d+|written by the (starting policy|policy of iteration \d+)) · ran [\d.]+ s · .*\n[\s\S]*import /,
  );

  const report = (await plugin.run("report", run)).trim();
  assert.match(readFileSync(report, "utf8"), /done, 2 iterations/);
  await pullModel(plugin, run);
  await plugin.run("pull", run, "best");
  const program = readFileSync(join(plugin.folder, `${run}-best`, "program.py"), "utf8");
  assert.ok(best.endsWith(`\n${program}`));
  await plugin.run("pull", run, "run");
  const names = readdirSync(join(plugin.folder, run));
  say(`the run folder: ${names.join(" ")}`);
  for (const name of ["store.sqlite", "metrics.jsonl", "tensorboard", "checkpoints"])
    assert.ok(names.includes(name), name);
  const pods = await kubectl.items<{ metadata: { name: string } }>("pods", "--selector", `longrun.dev/run=${run}`);
  assert.ok(!pods.some(({ metadata }) => metadata.name.includes("reader")), "the pods that read the volume are gone");
}

/** Evaluates the trained policy on the cluster, without training. */
export async function evaluateFinished(plugin: Plugin, kubectl: Kubectl, run: string): Promise<void> {
  const evaluation = JSON.parse(await plugin.run("evaluate", run, "--samples", "4", "--timeout", "300"));
  say(JSON.stringify(evaluation));
  assert.equal(evaluation.iteration, 0, "iterations of the run that evaluates");
  assert.ok(evaluation.samples >= 4 && evaluation.validFraction >= 0);
  await assert.rejects(kubectl.trainingRun(`${run}-evaluation`), /not found/i);
}

/** Pulls a folder that transformers can load. */
async function pullModel(plugin: Plugin, run: string): Promise<void> {
  const folder = (await plugin.run("pull", run, "model")).trim();
  assert.equal(folder, join(plugin.folder, `${run}-model`));
  assert.deepEqual(
    ["config.json", "model.safetensors", "tokenizer.json"].filter((name) => !existsSync(join(folder, name))),
    [],
  );
}
