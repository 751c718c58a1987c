/** Runs every command that makes a folder of the user's choice with a folder below /proc, where Node's recursive `mkdir` never returns. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { summarize } from "../../learner/evaluation/figures.ts";
import { HubServer } from "../../learner/hub/hub-server.fixture.ts";
import { processesWith } from "./fakes/home.ts";

const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const POLICY = file("manifests/quickstart/policy");
const MANIFEST = file("manifests/quickstart/trainingrun.yaml");
/** A command that has not ended by then counts as one that never ends. */
const DEADLINE_SECONDS = 30;
const NOWHERE = "/proc/longrun/folder";

const home = mkdtempSync(join(tmpdir(), "longrun-output-folders-"));
after(() => rmSync(home, { recursive: true, force: true }));
const put = (path: string, text: string): string => {
  mkdirSync(join(home, path, ".."), { recursive: true });
  writeFileSync(join(home, path), text);
  return join(home, path);
};
const table = put("houses.csv", `size,price\n${Array.from({ length: 9 }, (_, row) => `${row},${row}`).join("\n")}\n`);
const kubeconfig = put(
  "kubeconfig",
  "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n" +
    "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: a, user: {}}]\n",
);
const examples = put("examples.jsonl", `{"prompt":"a","completion":"b"}\n{"prompt":"b","completion":"c"}\n`);
put("run/trainingrun.yaml", "kind: TrainingRun\n");
const shared = { metric: "RMSE", direction: "Lower" } as const;
put(
  "evaluated/summary.json",
  JSON.stringify({
    state: "succeeded",
    evaluation: {
      before: summarize([{ id: "a", kind: "scratch", valid: false }], shared, { iteration: 0, lost: 0, seed: 0 }),
      settings: {
        ...{ task: "own", ...shared, rewardSplit: "Full", protocol: "Paper", samples: 1 },
        ...{ temperature: 1, seed: 0, confidence: 0.95 },
      },
    },
  }),
);

let count = 0;
/** Runs a program of the command line. @returns its exit status, null if it did not end, and its stderr */
async function run(program: string, args: string[], env: NodeJS.ProcessEnv) {
  const mark = `${home}-${count++}`;
  const own = { npm_lifecycle_event: "", LONGRUN_CACHE: join(home, "cache"), MARK: mark };
  const child = spawn(process.execPath, [file(program), ...args], {
    cwd: home,
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, ...own, ...env },
  });
  const deadline = setTimeout(() => {
    for (const pid of processesWith(`MARK=${mark}`)) process.kill(pid, "SIGKILL"); // a child spins in mkdir
  }, DEADLINE_SECONDS * 1000);
  const stderr = text(child.stderr);
  const [status] = await once(child, "close");
  clearTimeout(deadline);
  return { status, stderr: await stderr };
}

describe("A folder that cannot be made ends a command with status 2 and one line", () => {
  const own = ["--from", table, "--target", "price", "--metric", "RMSE"];
  const cluster = ["--kubeconfig", kubeconfig];
  const vllm = ["--vllm", "http://127.0.0.1:1", "--model-name", "m", "--slots", "1"];
  const cases: [args: string[], named: RegExp, env?: NodeJS.ProcessEnv][] = [
    [["run", MANIFEST, "--out", NOWHERE], /^--out/],
    [["evaluate", MANIFEST, "--out", NOWHERE], /^--out/],
    [["evaluate", "--table", "evaluated", "--out", NOWHERE], /^--out/],
    [["prepare", "diamonds"], /^LONGRUN_CACHE/, { LONGRUN_CACHE: NOWHERE }],
    [["task", "init", NOWHERE, ...own], /^\/proc/],
    [["model", "convert", POLICY, "--out", NOWHERE], /^--out/],
    [["model", "fetch", "acme/model", "--out", NOWHERE], /^\/proc/],
    [["model", "fetch", "acme/model"], /^\/proc/, { LONGRUN_CACHE: NOWHERE }],
    [["pretrain", "--out", NOWHERE], /^--out/],
    [["sft", "--model", POLICY, "--data", examples, "--out", NOWHERE], /^--out/],
    [["certificates", "--hosts", "a", "--out", NOWHERE], /^--out/],
    [["debug", "run", "--out", `${NOWHERE}/bundle.tar.gz`], /^--out/],
    [["serve", "--tls", home, ...vllm, "--adapter-folder", NOWHERE], /^--adapter-folder/],
    [["kubectl", "pull", "quick", "model", ...cluster, "--out", NOWHERE], /^--out/],
  ];
  for (const [[command = "", ...args], named, env = {}] of cases)
    test([...Object.keys(env), command, ...args.filter((word) => /^[a-z-]+$/.test(word))].join(" "), async () => {
      await using hub = await HubServer.of(POLICY);
      const [program, words] =
        command === "kubectl"
          ? ["controller/plugin/kubectl-longrun.ts", args]
          : ["controller/cli.ts", [command, ...args]];
      const { status, stderr } = await run(program, words, { HF_ENDPOINT: hub.endpoint, ...env });
      const said = stderr.split("\n").filter((line) => line !== "" && !/^Preparing /.test(line));
      assert.deepEqual([status, said.length], [2, 1], stderr);
      assert.match(said[0]!, named);
      assert.match(said[0]!, / ?\/proc\/longrun\S*: no folder can be created there; choose another place$/);
    });
});
