/**
 * What a policy writes: samples solutions for a task and says how many parse, in which families they are and which
 * share is not in the corpus word for word. With `--python`, runs them one by one and grades their submissions.
 *
 *     node learner/pretrain/sample.ts --task-dir DIR [--policy DIR] [--samples N] [--temperature T] [--seed N]
 *                                     [--threads N] [--python PYTHON] [--timeout SECONDS] [--jsonl FILE]
 *
 * `--python` runs programs of the policy as the user who calls it, with no isolation: for a look at a policy that was
 * pretrained on the generated corpus. Runs use actors instead.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startEngine } from "../engine/engine.ts";
import { readTokenizer } from "../engine/model/folder.ts";
import { seedFor } from "../engine/model/random.ts";
import { family } from "../rollout/family.ts";
import { scratchPrompt } from "../rollout/prompts.ts";
import { readPromptTask } from "../rollout/snippet.ts";
import { parseSolution } from "../rollout/solution.ts";
import { openTask, type Task } from "../tasks/task.ts";
import { inCorpus } from "./corpus.ts";

interface Written {
  task: string;
  text: string;
  tokens: number;
  finished: boolean;
  fault?: string;
  program?: string;
  family?: string;
  verbatim?: boolean;
  score?: number;
  reason?: string;
  seconds?: number;
}

const { values: given } = parseArgs({
  options: {
    "task-dir": { type: "string" },
    policy: { type: "string", default: fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url)) },
    samples: { type: "string", default: "64" },
    temperature: { type: "string", default: "0.8" },
    seed: { type: "string", default: "0" },
    threads: { type: "string", default: "1" },
    python: { type: "string" },
    timeout: { type: "string", default: "20" },
    jsonl: { type: "string" },
  },
});
const taskDirectory = given["task-dir"];
if (taskDirectory === undefined) {
  console.error("--task-dir is missing; give the folder that prepare made for the task");
  process.exit(2);
}

const task = openTask(taskDirectory);
const written = await write(task);
if (given.python !== undefined) for (const solution of written) execute(solution, task, given.python);
if (given.jsonl !== undefined) writeFileSync(given.jsonl, written.map((line) => `${JSON.stringify(line)}\n`).join(""));
console.log(summary(written).join("\n"));

async function write(task: Task): Promise<Written[]> {
  const tokenizer = readTokenizer(given.policy);
  const hashesFile = join(given.policy, "corpus.hashes");
  const hashes = existsSync(hashesFile) ? readFileSync(hashesFile) : undefined;
  const engine = await startEngine({ model: given.policy, threads: Number(given.threads) });
  try {
    const encode = (messages: Parameters<typeof tokenizer.encodeChat>[0]) => tokenizer.encodeChat(messages);
    const prompt = scratchPrompt(readPromptTask(task, 0), { style: "Short", maxPromptTokens: 512, encode });
    const count = Number(given.samples);
    const generated = await engine.generate(Array(count).fill(prompt.tokens), {
      seeds: Array.from({ length: count }, (_, i) => seedFor(Number(given.seed), "sample", i)),
      temperature: Number(given.temperature),
      topP: 1,
      maxNewTokens: 256,
    });
    return generated.map(({ response, finished }) => {
      const text = tokenizer.decode(response);
      const base = { task: task.name, text, tokens: response.length, finished };
      const parsed = parseSolution(text);
      if ("fault" in parsed) return { ...base, fault: parsed.fault };
      const { program } = parsed;
      return { ...base, program, family: family(program), verbatim: hashes && inCorpus(program, hashes) };
    });
  } finally {
    await engine.close();
  }
}

function execute(solution: Written, task: Task, python: string): void {
  if (solution.program === undefined) return;
  const scratch = mkdtempSync(join(tmpdir(), "sample-"));
  try {
    symlinkSync(resolve(task.publicDirectory), join(scratch, "input"));
    writeFileSync(join(scratch, "program.py"), solution.program);
    const started = performance.now();
    const run = spawnSync(python, ["program.py"], {
      cwd: scratch,
      encoding: "utf8",
      timeout: Number(given.timeout) * 1000,
      killSignal: "SIGKILL",
      env: { PATH: process.env.PATH, OMP_NUM_THREADS: "1", OPENBLAS_NUM_THREADS: "1", PYTHONWARNINGS: "ignore" },
    });
    solution.seconds = (performance.now() - started) / 1000;
    const submission = join(scratch, "submission.csv");
    if (run.error) solution.reason = run.error.message;
    else if (run.status !== 0) solution.reason = run.stderr.trim().split("\n").at(-1)?.slice(0, 200);
    else if (!existsSync(submission)) solution.reason = "no submission.csv";
    else {
      const graded = task.grade(readFileSync(submission));
      if (graded.valid) solution.score = graded.score;
      else solution.reason = graded.reason.message;
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function summary(all: readonly Written[]): string[] {
  const share = (part: number) => `${part} of ${all.length} (${Math.round((100 * part) / all.length)} %)`;
  const programs = all.filter(({ program }) => program !== undefined);
  const valid = all.filter(({ score }) => score !== undefined);
  const tokens = all.reduce((sum, { tokens: count }) => sum + count, 0) / all.length;
  const lines = [
    `parse: ${share(programs.length)}, ${tokens.toFixed(1)} tokens a solution`,
    `not in the corpus word for word: ${share(programs.filter(({ verbatim }) => verbatim === false).length)}`,
  ];
  if (given.python !== undefined) {
    const scores = valid.map(({ score }) => score!).sort((a, b) => a - b);
    const at = (q: number) => scores[Math.min(scores.length - 1, Math.floor(q * scores.length))]?.toPrecision(5);
    lines.push(
      `valid: ${share(valid.length)}; scores ${[0, 0.1, 0.5, 0.9, 1].map(at).join(", ")} (0, 10, 50, 90, 100 %)`,
    );
  }
  const families = Map.groupBy(programs, (solution) => solution.family!);
  for (const [name, members] of [...families].sort((a, b) => b[1].length - a[1].length)) {
    const scored = members.filter(({ score }) => score !== undefined).length;
    lines.push(`${name.padEnd(28)} ${String(members.length).padStart(4)}${given.python ? `, ${scored} valid` : ""}`);
  }
  return lines;
}
