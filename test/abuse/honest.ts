/** Honest programs: in the sandbox they must produce the same submission as outside, byte by byte. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DEFAULT_LIMITS } from "../../actor/limits.ts";
import type { IsolationLevel } from "../../proto/isolation.ts";
import { type Arena, programsIn } from "./suite.ts";

const FOLDER = join(import.meta.dirname, "honest");
const LIMITS = { ...DEFAULT_LIMITS, timeoutSeconds: 120 };

/** Programs that cannot work: at `landlock` a program has one process. */
const IMPOSSIBLE: Partial<Record<IsolationLevel, string[]>> = {
  landlock: [
    "processes",
    "subprocesses",
    "executor_of_processes",
    "managers_and_pools",
    "psutil_children",
    "torch_loader_workers",
  ],
};

/** Text that such a program must print when it fails, as a hint for its author. */
const SAYS: Record<string, RegExp> = { torch_loader_workers: /PermissionError: .* one process here.* num_workers=0/ };

export class Honest {
  readonly #python: string;
  /** Names of the programs for this environment. */
  readonly names: string[];
  /** {package: programs that need it and are not run} */
  readonly missing = new Map<string, string[]>();
  readonly #outside = new Map<string, Buffer>();

  constructor(environment: string) {
    this.#python = join(environment, "bin", "python");
    const needs = new Map(programsIn("honest").map((name) => [name, /^# needs: (\w+)/.exec(textOf(name))?.[1]]));
    const packages = [...new Set([...needs.values()].filter((name) => name !== undefined))];
    const code = `import importlib.util as u\nprint(*[n for n in ${JSON.stringify(packages)} if u.find_spec(n) is None])`;
    const absent = spawnSync(this.#python, ["-c", code], { encoding: "utf8" }).stdout.trim().split(" ");
    for (const [name, needed] of needs)
      if (needed && absent.includes(needed)) this.missing.set(needed, [...(this.missing.get(needed) ?? []), name]);
    const left = new Set([...this.missing.values()].flat());
    this.names = [...needs.keys()].filter((name) => !left.has(name));
  }

  /** @returns undefined if the program cannot work, see IMPOSSIBLE. @throws AssertionError */
  async tryProgram(arena: Arena, name: string): Promise<string | undefined> {
    const impossible = IMPOSSIBLE[arena.column.level]?.includes(name);
    const said = impossible ? SAYS[name] : undefined;
    if (impossible && !said) return undefined;
    const result = await arena.run(textOf(name), LIMITS);
    if (said) {
      assert.equal(result.outcome, "failed");
      assert.match(result.terminalOutput.toString(), said);
      return undefined;
    }
    assert.equal(
      result.outcome,
      "completed",
      `${result.outcome} ${result.detail}\n${result.terminalOutput.toString().slice(-2000)}`,
    );
    assert.ok(result.submission && result.submission.length > 0, "no submission");
    const outside = this.#submissionOutside(name, arena.world.publicData);
    assert.equal(result.submission.toString(), outside.toString(), "another submission than outside");
    arena.settled(result);
    return "same";
  }

  #submissionOutside(name: string, publicData: string): Buffer {
    const known = this.#outside.get(name);
    if (known) return known;
    const folder = mkdtempSync(join(tmpdir(), "longrun-honest-"));
    try {
      symlinkSync(publicData, join(folder, "input"));
      const threads = ["OMP", "OPENBLAS", "MKL", "NUMEXPR"].map((library) => [`${library}_NUM_THREADS`, "1"]);
      const env = { PATH: "/usr/bin:/bin", HOME: folder, TMPDIR: folder, LANG: "C.UTF-8", PYTHONHASHSEED: "0" };
      const run = spawnSync(this.#python, [join(FOLDER, `${name}.py`)], {
        ...{ cwd: folder, env: { ...env, ...Object.fromEntries(threads), MPLCONFIGDIR: folder }, timeout: 300_000 },
      });
      const path = join(folder, "submission.csv");
      assert.ok(run.status === 0 && existsSync(path), `outside of the sandbox it fails: ${run.stderr}`);
      const submission = readFileSync(path);
      this.#outside.set(name, submission);
      return submission;
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
}

function textOf(name: string): string {
  return readFileSync(join(FOLDER, `${name}.py`), "utf8");
}
