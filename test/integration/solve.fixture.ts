/** A small task, solutions that a scripted endpoint answers with, and `longrun solve` as a process. */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { completion, type Scripted } from "../../learner/solve/endpoint/server.fixture.ts";
import type { RequestLine } from "../../learner/solve/endpoint/usage.ts";
import { openStore } from "../../learner/store/store.ts";
import type { Sample } from "../../learner/store/types.ts";
import { CLI } from "./serve.fixture.ts";

export const home = mkdtempSync(join(tmpdir(), "longrun-solve-"));
after(() => rmSync(home, { recursive: true, force: true }));

export const task = join(home, "double");
for (const part of ["public", "private"]) mkdirSync(join(task, "prepared", part), { recursive: true });
const FILES = {
  "task.yaml": `name: double
executionTimeoutSeconds: 5
grader: { metric: MAE, idColumn: id, targetColumns: [y], direction: Lower }
`,
  "prepared/public/description.md": "Predict y from x.\n",
  "prepared/public/train.csv": "id,x,y\n1,1,2\n2,2,4\n",
  "prepared/public/test.csv": "id,x\n3,3\n4,4\n",
  "prepared/public/sample_submission.csv": "id,y\n3,0\n4,0\n",
  "prepared/private/answers.csv": "id,y\n3,60001\n4,80001\n",
};
for (const [name, text] of Object.entries(FILES)) writeFileSync(join(task, name), text);

/** Returns a solution that misses each answer by `error`. Its program shows what it can see of its surroundings. */
const solution = (error: number) => `I double x.
\`\`\`python
import os
print(dict(os.environ))
open("submission.csv", "w").write("id,y\\n3,${60001 + error}\\n4,${80001 + error}\\n")
\`\`\``;
const BROKEN = "I fail.\n```python\nraise ValueError('broken on purpose')\n```";

/** Answers number i with an error of 100 - i; every fourth program fails, every seventh answer holds none. */
export function better(milliseconds = 0): Scripted {
  let answers = 0;
  return (response, asked) => {
    const i = ++answers;
    const text = i % 7 === 0 ? "No program." : i % 4 === 0 ? BROKEN : solution(100 - i);
    setTimeout(() => completion(text)(response, asked), milliseconds);
  };
}

export interface Started {
  child: ReturnType<typeof spawn>;
  ended: Promise<{ status: number | null; stdout: string; stderr: string }>;
  said: { stdout: string; stderr: string };
}

export function solve(args: string[], env: NodeJS.ProcessEnv = {}): Started {
  const child = spawn(process.execPath, [CLI, "solve", ...args], {
    cwd: home,
    env: { ...process.env, LONGRUN_ENDPOINT_KEY: "", COLUMNS: "160", ...env },
  });
  const said = { stdout: "", stderr: "" };
  child.stdout!.on("data", (text) => (said.stdout += text));
  child.stderr!.on("data", (text) => (said.stderr += text));
  const timer = setTimeout(() => child.kill("SIGKILL"), 120_000);
  const ended = new Promise<Awaited<Started["ended"]>>((resolve) =>
    child.once("close", (status) => {
      clearTimeout(timer);
      resolve({ status, ...said });
    }),
  );
  return { child, ended, said };
}

export function samplesIn(folder: string): Sample[] {
  if (!existsSync(join(home, folder, "store.sqlite"))) return [];
  const store = openStore(join(home, folder, "store.sqlite"), { readOnly: true });
  try {
    return store.samplesFor("solve");
  } finally {
    store.close();
  }
}

/** Returns the number of graded solutions; 0 while the store is being made. */
export function finished(folder: string): number {
  try {
    return samplesIn(folder).filter(({ grade }) => grade).length;
  } catch {
    return 0;
  }
}
export const requestsOf = (folder: string) =>
  readFileSync(join(home, folder, "requests.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as RequestLine);

/** Returns the texts of all files of a folder. */
export function everything(folder: string): string {
  const entries = readdirSync(join(home, folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"))
    .join("\n");
}

const SMALL = ["--set", "learner.leaseSeconds=4", "--set", "learner.heartbeatSeconds=0.5"];
export const to = (url: string, ...more: string[]) => [
  "--task",
  task,
  "--endpoint",
  url,
  "--model-name",
  "large",
  ...SMALL,
  ...more,
];
