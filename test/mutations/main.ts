/**
 * `npm run test:mutations [-- ID | AREA …]`: breaks one line at a time in a copy of the project, and runs the tests that must detect it.
 * README.md explains the outcomes. Exit status: 0 all were killed, 1 not all, 2 no such mutation or a missing
 * program, 130 interrupted.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lookForTools } from "../lane-tools.ts";
import { type Mutation, ROOT, readMutations } from "./list.ts";
import { type MutationResult, runTests, STATUSES, type TestRun, tryMutation } from "./run.ts";

/** Mutations that are tried at once, each in its own copy of the project. */
const COPIES = 2;
/** Seconds after which a test file is ended. Without a mutation the longest one takes about 20 s on an idle core. */
const FILE_SECONDS = 120;

/** Copies the working tree, without ignored files, to a new folder. */
function copyProject(folder: string): string {
  const options = { cwd: ROOT, encoding: "utf8" } as const;
  const files = ["--cached", "--others", "--exclude-standard", "--deduplicate"];
  for (const file of execFileSync("git", ["ls-files", "-z", ...files], options)
    .split("\0")
    .filter(Boolean))
    cpSync(join(ROOT, file), join(folder, file));
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  return folder;
}

/** Calls `work` with each item, one at a time per folder. */
async function inFolders<Item>(
  folders: string[],
  items: Iterable<Item>,
  work: (folder: string, item: Item) => unknown,
) {
  const queue = [...items].values();
  await Promise.all(
    folders.map(async (folder) => {
      for (const item of queue) await work(folder, item);
    }),
  );
}

const secondsSince = (start: number) => (performance.now() - start) / 1000;
const say = (line: string) => process.stdout.write(`${line}\n`);

async function main(asked: string[], signal: AbortSignal): Promise<number> {
  const areas = readMutations();
  const all = [...areas.values()].flat();
  const unknown = asked.filter((name) => !areas.has(name) && !all.some(({ id }) => id === name));
  if (unknown.length > 0) {
    process.stderr.write(
      `no mutation or area ${unknown.join(", ")}: there are the areas ${[...areas.keys()].join(", ")} and the mutations ${all.map(({ id }) => id).join(", ")}\n`,
    );
    return 2;
  }
  const mutations = [...areas].flatMap(([area, list]) =>
    asked.length === 0 || asked.includes(area) ? list : list.filter(({ id }) => asked.includes(id)),
  );
  const start = performance.now();
  const options = { fileSeconds: FILE_SECONDS, signal };
  const directory = mkdtempSync(join(tmpdir(), "longrun-mutations-"));
  try {
    const folders = Array.from({ length: COPIES }, (_, copy) => copyProject(join(directory, String(copy))));
    // A test that fails by itself would kill any mutation. Some tests fail on a busy machine, so a file counts as failed if it fails twice.
    let files = [...new Set(mutations.flatMap(({ tests }) => tests))];
    let broken: string[] = [];
    for (let tries = 0; tries < 2 && files.length > 0; tries++) {
      const failed = new Map<string, TestRun>();
      await inFolders(folders, files, async (folder, file) => {
        const run = await runTests(folder, file, options);
        if (run.status !== "passed") failed.set(file, run);
      });
      files = [...failed.keys()];
      broken = [...failed].map(([file, run]) => `${file} fails without a mutation: ${run.failed ?? run.status}`);
    }
    if (broken.length > 0) {
      process.stderr.write(`${broken.join("\n")}\n`);
      return 1;
    }
    say(`without a mutation the tests pass, ${secondsSince(start).toFixed(0)} s`);
    const outcomes = new Map<Mutation, MutationResult>();
    await inFolders(folders, mutations, async (folder, mutation) => {
      const outcome = await tryMutation(folder, mutation, options);
      outcomes.set(mutation, outcome);
      const { status, seconds, detail } = outcome;
      say(`${status.padEnd(17)} ${mutation.id.padEnd(42)} ${seconds.toFixed(1).padStart(5)} s  ${detail}`);
    });
    say(`\n${table(areas, outcomes)}\n${mutations.length} mutations in ${secondsSince(start).toFixed(0)} s`);
    const left = [...outcomes.values()].filter(({ status }) => !status.startsWith("killed"));
    for (const { mutation, status, detail } of left) say(`${status}: ${mutation.id}: ${detail}`);
    return left.length > 0 ? 1 : 0;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Returns a table: the number of mutations of each area by status. */
function table(areas: Map<string, Mutation[]>, outcomes: Map<Mutation, MutationResult>): string {
  const row = (name: string, cells: readonly (string | number)[]) =>
    name.padEnd(12) + cells.map((cell) => String(cell).padStart(19)).join("");
  const counts = (list: Mutation[]) =>
    STATUSES.map((status) => list.filter((mutation) => outcomes.get(mutation)?.status === status).length);
  const rows = [...areas].filter(([, list]) => list.some((mutation) => outcomes.has(mutation)));
  return [row("", STATUSES), ...rows.map(([area, list]) => row(area, counts(list)))].join("\n");
}

lookForTools("test:mutations");
const interrupt = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => interrupt.abort());
process.exitCode = await main(process.argv.slice(2), interrupt.signal).catch((error) => {
  if (interrupt.signal.aborted) return 130;
  throw error;
});
