/** Makes a folder to run `longrun` in: a manifest, a policy of empty files, the data of a custom task. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** @returns the folder; it has `run.yaml`, `policy/`, `custom/{public,private,empty}` and `tmp/` */
export function makeHome(): string {
  const home = mkdtempSync(join(tmpdir(), "longrun-test-"));
  for (const folder of ["tmp", "policy", "custom/public", "custom/private", "custom/empty"])
    mkdirSync(join(home, folder), { recursive: true });
  for (const file of ["config.json", "model.safetensors", "tokenizer.json"])
    writeFileSync(join(home, "policy", file), "");
  for (const file of [
    "public/train.csv",
    "public/sample_submission.csv",
    "public/description.md",
    "private/answers.csv",
  ])
    writeFileSync(join(home, "custom", file), "id,y\n");
  writeFileSync(
    join(home, "run.yaml"),
    `apiVersion: longrun.dev/v1alpha1
kind: TrainingRun
metadata: { name: test }
spec:
  tasks: [{ name: diamonds }]
  model: { policy: ./policy }
  restart: { backoffSeconds: 0.05, maxBackoffSeconds: 0.1, maxFailures: 2 }
`,
  );
  return home;
}

export const GRADER = "grader: { metric: R2, idColumn: id, targetColumns: [y], direction: Higher }";
export const DATA = "publicData: { path: custom/public }, privateData: { path: custom/private }";
/** @returns a `--set` that makes the task a custom one */
export const customTask = (fields: string): string => `tasks=[{ name: own, ${fields} }]`;

/** Returns an environment with temporary folders and caches below `home`, and with the fakes' behaviour. */
export function environment(home: string, fakes: { learner?: object; actor?: object } = {}): Record<string, string> {
  return {
    ...(process.env as Record<string, string>),
    TMPDIR: join(home, "tmp"),
    LONGRUN_CACHE: join(home, "cache"),
    npm_lifecycle_event: "",
    FAKE_LEARNER: JSON.stringify(fakes.learner ?? {}),
    FAKE_ACTOR: JSON.stringify(fakes.actor ?? {}),
  };
}

/** @returns the running processes whose environment contains `mark`, except this one */
export function processesWith(mark: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => {
      try {
        const dead = /^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
        return !dead && readFileSync(`/proc/${pid}/environ`, "utf8").includes(mark);
      } catch {
        return false;
      }
    })
    .map(Number);
}

export async function nothingLeft(mark: string): Promise<void> {
  for (let waited = 0; processesWith(mark).length > 0; waited += 20) {
    assert.ok(
      waited < 10_000,
      `processes are left: ${processesWith(mark).map((p) => `${p} ${readFileSync(`/proc/${p}/cmdline`, "utf8").replaceAll("\0", " ")}`)}`,
    );
    await sleep(20);
  }
}

export const removeHome = (home: string): void => rmSync(home, { recursive: true, force: true });
