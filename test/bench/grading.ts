/**
 * `npm run bench grading`: compares metrics on a million rows with scikit-learn and scipy, and whole submissions, from the file's bytes to
 * the score, with pandas and the same libraries as MLE-bench calls them. Both sides do each piece of work in turn, after one warm-up turn.
 * Reports medians of the ratios of neighbours.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { uniforms } from "../../learner/engine/model/random.ts";
import { gradeSubmission, readAnswers } from "../../learner/grading/grade.ts";
import { type MetricName, scoreColumns } from "../../learner/grading/metrics.ts";
import { mleBenchTask } from "../../learner/grading/mlebench-tasks.ts";
import { peerPython } from "./peers.ts";
import { type Bench, median } from "./result.ts";

const PEER = fileURLToPath(new URL("./grading_sklearn.py", import.meta.url));

type Columns = Float64Array[];

interface Took {
  seconds: number;
  cpuSeconds: number;
  score: number;
}

/** Returns truth and predictions of `rows` rows that a fair model could make. */
function makeColumns(metric: MetricName, rows: number): { truth: Columns; predicted: Columns } {
  const next = uniforms(0, metric);
  const column = (value: (row: number) => number) => Float64Array.from({ length: rows }, (_, row) => value(row));
  const rounded = (value: number) => Math.round(value * 1e6) / 1e6;
  switch (metric) {
    case "RocAuc": {
      const truth = column(() => Math.floor(next() * 2));
      return { truth: [truth], predicted: [column((row) => rounded(0.2 * truth[row]! + 0.8 * next()))] };
    }
    case "Accuracy":
    case "F1Macro":
    case "QuadraticWeightedKappa": {
      const truth = column(() => 1 + Math.floor(next() * 7));
      return {
        truth: [truth],
        predicted: [column((row) => (next() < 0.8 ? truth[row]! : 1 + Math.floor(next() * 7)))],
      };
    }
    case "LogLoss": {
      const label = column(() => Math.floor(next() * 3));
      const first = column((row) => rounded((label[row] === 0 ? 0.3 : 0) + 0.6 * next()));
      const second = column((row) => rounded((1 - first[row]!) * next()));
      const third = column((row) => rounded(1 - first[row]! - second[row]!));
      return { truth: [0, 1, 2].map((k) => label.map((l) => Number(l === k))), predicted: [first, second, third] };
    }
    default: {
      const truth = [column(() => rounded(5 * next())), column(() => rounded(5 * next()))];
      const predicted = truth.map((t) => column((row) => rounded(t[row]! + 0.1 * next())));
      return metric === "RMSLE" ? { truth, predicted } : { truth: [truth[0]!], predicted: [predicted[0]!] };
    }
  }
}

const METRICS: MetricName[] = ["RocAuc", "Accuracy", "F1Macro", "QuadraticWeightedKappa", "Pearson", "R2", "MAE"];
METRICS.push("RMSE", "RMSLE", "LogLoss");
/** Tasks whose ids are whole numbers, graded from the file. `check`: probabilities and, for several columns, sums. */
const TASKS = {
  "tabular-playground-series-may-2022": true,
  "tabular-playground-series-dec-2021": false,
  "lmsys-chatbot-arena": true,
};

function csv(header: string[], ids: ArrayLike<number>, order: ArrayLike<number>, columns: Columns): string {
  const lines = [header.join(",")];
  for (let i = 0; i < ids.length; i++) {
    const row = order[i]!;
    lines.push(`${ids[row]},${columns.map((column) => column[row]).join(",")}`);
  }
  return `${lines.join("\n")}\n`;
}

async function run(flags: string[]) {
  const { values } = parseArgs({
    args: flags,
    options: { rows: { type: "string", default: "1000000" }, rounds: { type: "string", default: "5" } },
  });
  const [rows, rounds] = [Number(values.rows), Number(values.rounds)];
  const folder = mkdtempSync(join(tmpdir(), "longrun-grading-"));
  const facts: Record<string, unknown> = {};
  const works: { kind: "metric" | "file"; name: string; ours: () => number }[] = [];
  for (const metric of METRICS) {
    const { truth, predicted } = makeColumns(metric, rows);
    facts[metric] = { columns: truth.length };
    for (const [side, columns] of Object.entries({ truth, predicted }))
      for (const [c, column] of columns.entries()) writeFileSync(join(folder, `${metric}-${side}-${c}.f64`), column);
    works.push({ kind: "metric", name: metric, ours: () => scoreColumns(metric, truth, predicted) });
  }
  for (const [id, check] of Object.entries(TASKS)) {
    const task = mleBenchTask(id)!;
    const { truth, predicted } = makeColumns(task.metric, rows);
    const next = uniforms(1, id);
    const ids = Uint32Array.from({ length: rows }, (_, row) => 3 * row + Math.floor(3 * next()));
    const order = Uint32Array.from(ids.keys());
    const keys = Float64Array.from(ids, () => next());
    const shuffled = order.toSorted((a, b) => keys[a]! - keys[b]!);
    const header = [task.idColumn, ...task.targetColumns];
    writeFileSync(join(folder, `${id}-answers.csv`), csv(header, ids, shuffled, truth));
    const { metric, targetColumns: targets } = task;
    for (const [how, rowsInOrder] of Object.entries({ "": shuffled, "-shuffled": order })) {
      const name = `${id}${how}`;
      facts[name] = { metric, targets, id: task.idColumn, check, columns: truth.length };
      writeFileSync(join(folder, `${name}.csv`), csv(header, ids, rowsInOrder, predicted));
      if (how !== "")
        writeFileSync(join(folder, `${name}-answers.csv`), readFileSync(join(folder, `${id}-answers.csv`)));
    }
    const answers = readAnswers(readFileSync(join(folder, `${id}-answers.csv`)), task);
    for (const how of ["", "-shuffled"]) {
      const file = join(folder, `${id}${how}.csv`);
      works.push({
        kind: "file",
        name: `${id}${how}`,
        ours: () => gradeSubmission(readFileSync(file), answers).scoreRaw!,
      });
    }
  }
  writeFileSync(join(folder, "facts.json"), JSON.stringify(facts));
  const peer = new Peer(await peerPython("requirements-grading.txt", "pandas and scikit-learn"), folder);
  const raw: Record<string, { ours: Took[]; peer: Took[] }> = {};
  try {
    for (const { kind, name, ours } of works) {
      const taken: { ours: Took[]; peer: Took[] } = { ours: [], peer: [] };
      raw[`${kind} ${name}`] = taken;
      for (let round = 0; round <= rounds; round++) {
        const [a, b] = [timed(ours), await peer.ask(`${kind} ${name}`)];
        if (Math.abs(a.score - b.score) > 1e-9 * Math.max(1, Math.abs(b.score)))
          throw new Error(`${name}: ${a.score}, and ${b.score} of the reference`);
        if (round > 0) {
          taken.ours.push(a);
          taken.peer.push(b);
        }
      }
    }
  } finally {
    peer.end();
    rmSync(folder, { recursive: true, force: true });
  }
  const ratio = ({ ours, peer: other }: { ours: Took[]; peer: Took[] }, of: "seconds" | "cpuSeconds") =>
    median(ours.map((one, i) => other[i]![of] / one[of]));
  const milliseconds = (taken: Took[]) => Math.round(1000 * median(taken.map(({ seconds }) => seconds)));
  const table = Object.entries(raw).map(([work, taken]) => ({
    work,
    "longrun ms": milliseconds(taken.ours),
    "reference ms": milliseconds(taken.peer),
    "times as fast": ratio(taken, "seconds").toFixed(2),
    "by CPU time": ratio(taken, "cpuSeconds").toFixed(2),
  }));
  const goals = Object.entries(raw).map(([work, taken]) => {
    const measured = ratio(taken, "cpuSeconds");
    return { what: `${work}, by CPU time`, goal: ">= 1.0x", measured: `${measured.toFixed(2)}x`, met: measured >= 1 };
  });
  const method =
    `${rows} rows, ${rounds} rounds in turn after one that does not count; scores agree at 1e-9. ` +
    "metric: columns in memory. file: reading, checking, matching ids and scoring a submission, the answers in memory";
  return { rows: table, goals, method, raw };
}

function timed(work: () => number): Took {
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  const score = work();
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  return { seconds, cpuSeconds: (user + system) / 1e6, score };
}

/** The Python twin, which answers a line with a line. */
class Peer {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(python: string, folder: string) {
    this.#child = spawn(python, [PEER, folder], { stdio: ["pipe", "pipe", "inherit"] });
    this.#lines = createInterface({ input: this.#child.stdout! })[Symbol.asyncIterator]();
  }

  async ask(work: string): Promise<Took> {
    this.#child.stdin!.write(`${work}\n`);
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`${PEER} ended at ${work}`);
    return JSON.parse(value) as Took;
  }

  end(): void {
    this.#child.stdin!.end();
  }
}

export const grading: Bench = { about: "graders on a million rows beside pandas, scikit-learn and scipy", run };
