/**
 * A whole learner with `LONGRUN_DEVICE=cuda:0`: the quickstart, started by `longrun run`, resumed, and evaluated. The stand-in does the
 * arithmetic of each kernel, so the policy writes programs that run, and has something to learn from.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import test, { after, before } from "node:test";
import { COUNTERS } from "./counts.ts";

const ROOT = path.join(import.meta.dirname, "../..");
/** nvidia-smi's answer about a GPU's free memory. */
const FREE_MEBIBYTES = 70_000;
/** A batch that is generated in seconds, and short answers of the static policy. */
const SMALL = [
  ...["spec.algorithm.batchSize=8", "spec.evaluation.before=false", "spec.evaluation.after=false"],
  ...["spec.model.instrumenter=StaticPolicy", "spec.model.instrumenterMaxPromptTokens=768"],
  "spec.model.instrumenterMaxResponseTokens=16",
];

let folder: string;
let out: string;
let report: string;
before(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), "longrun-quickstart-"));
  out = path.join(folder, "run");
  report = path.join(folder, "report");
  const smi = path.join(folder, "nvidia-smi");
  await writeFile(smi, `#!/bin/sh\ncase "$*" in *--id=[01]) echo ${FREE_MEBIBYTES} ;; *) exit 1 ;; esac\n`);
  await chmod(smi, 0o755);
});
after(() => rm(folder, { recursive: true }));

function longrun(command: string[], env: Record<string, string>) {
  const run = spawnSync(process.execPath, ["controller/cli.ts", ...command], {
    ...{ cwd: ROOT, encoding: "utf8", timeout: 400_000 },
    env: {
      ...{ ...process.env, PATH: `${folder}:${process.env.PATH}`, LONGRUN_DEVICE: "cuda:0" },
      ...{ REHEARSAL_REPORT: report, ...env },
    },
  });
  return { status: run.status, said: `${run.stdout}${run.stderr}` };
}

const set = (...values: string[]) => values.flatMap((value) => ["--set", value]);
const MANIFEST = "manifests/quickstart/trainingrun.yaml";
const ARITHMETIC = { REHEARSAL_ARITHMETIC: "1" };

interface Iteration {
  validFraction: number;
  policySteps: number;
  gradientNorm: number;
  /** Largest ratio, less 1, of the log-probs in training and in generation. */
  importanceMaxDeviation: number;
  /** Programs that the static policy could not instrument within its limit. */
  instrumenterFaults: { cutOff?: number };
}

async function iterations(run = out): Promise<Iteration[]> {
  const lines = (await readFile(path.join(run, "metrics.jsonl"), "utf8")).trim().split("\n");
  return lines.map((line) => JSON.parse(line));
}

/** Returns the most kernel runs of a command's process on a device, including the kernels of CUDA graphs. */
async function kernels(): Promise<number> {
  const reports = (await readFile(report, "utf8")).trim().split("\n");
  await rm(report);
  const of = (line: string, name: (typeof COUNTERS)[number]) => JSON.parse(line).counts[COUNTERS.indexOf(name)];
  return Math.max(...reports.map((line) => of(line, "launches") + of(line, "graphKernels")));
}

function assertTrained(iteration: Iteration): void {
  assert.ok(iteration.validFraction > 0, "some of the policy's programs run");
  const { importanceMaxDeviation } = iteration; // generation multiplies in bfloat16 on a GPU
  assert.ok(importanceMaxDeviation < 0.05, `ratios of training to generation are ${importanceMaxDeviation} off 1`);
  assert.equal(iteration.policySteps, 2);
  assert.ok(iteration.gradientNorm > 0);
  assert.ok(iteration.instrumenterFaults.cutOff! > 0, "the static policy was asked");
}

test("An iteration of the quickstart writes programs, asks the static policy, and trains on their scores", async () => {
  const arguments_ = ["run", MANIFEST, "--out", out, ...set("spec.stopping.iterations=1", ...SMALL)];
  const { status, said } = longrun(arguments_, ARITHMETIC);
  assert.equal(status, 0, said);
  assert.match(said, /memory plan: on cuda:0 .* of 73\.4 GB free on cuda:0/);
  const found = await iterations();
  assert.equal(found.length, 1);
  assertTrained(found[0]!);
  assert.ok((await kernels()) > 10_000);
});

test("The run resumes from its checkpoint", async () => {
  const { status, said } = longrun(["run", "--resume", out, ...set("spec.stopping.iterations=2")], ARITHMETIC);
  assert.equal(status, 0, said);
  const found = await iterations();
  assert.equal(found.length, 2);
  assertTrained(found[1]!);
  assert.ok((await kernels()) > 10_000);
});

test("longrun evaluate measures the policies before and after training", async () => {
  const { status, said } = longrun(["evaluate", "--run", out, "--samples", "4"], ARITHMETIC);
  assert.equal(status, 0, said);
  assert.match(said, /before training \|.*after 2 iterations/);
  assert.match(said, /^\| valid +\| +(50|75|100) % .*\| +\d+ %/m);
  assert.ok((await kernels()) > 1_000);
});

test("An iteration trains on two GPUs; when one fails, the run continues on the other", async () => {
  const where = { ...ARITHMETIC, LONGRUN_DEVICE: "cuda:0,1", REHEARSAL_DEVICES: "2" };
  const folderOfBoth = path.join(folder, "both");
  const arguments_ = ["run", MANIFEST, "--out", folderOfBoth, ...set("spec.stopping.iterations=1", ...SMALL)];
  const begun = longrun(arguments_, where);
  assert.equal(begun.status, 0, begun.said);
  assert.match(begun.said, /memory plan: on each of cuda:0,1 .* of 73\.4 GB free on cuda:[01]/);
  const again = ["run", "--resume", folderOfBoth, ...set("spec.stopping.iterations=2")];
  const resumed = longrun(again, { ...where, REHEARSAL_FAILED: "1" });
  assert.equal(resumed.status, 0, resumed.said);
  assert.match(resumed.said, /memory plan: on cuda:0 /);
  const found = await iterations(folderOfBoth);
  assert.equal(found.length, 2);
  for (const iteration of found) assertTrained(iteration);
  const refused = longrun(["run", MANIFEST, "--out", path.join(folder, "one"), ...set(...SMALL)], {
    ...{ ...where, REHEARSAL_FAILED: "1" },
  });
  assert.equal(refused.status, 2, refused.said);
  assert.match(refused.said, /cuda:1 cannot be used: it has failed \(CUDA failure 719/);
});

test("A run on a GPU whose memory is full ends with one line that says so", () => {
  const { status, said } = longrun(["run", MANIFEST, "--out", path.join(folder, "full"), ...set(...SMALL)], {
    REHEARSAL_BYTES: "30e6",
  });
  assert.equal(status, 1);
  const lines = said.split("\n").filter((line) => /memory is full/.test(line));
  assert.equal(lines.length, 1, said);
  assert.match(
    lines[0]!,
    /^the run failed: cuda:0 cannot be used: the GPU's memory is full; end what else uses it \(nvidia-smi\)/,
  );
});
