/** Runs hostile and honest programs at one isolation level: makes a world and a sandbox, and checks the results. */
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { descendants } from "../../actor/descendants.fixture.ts";
import { ActorError } from "../../actor/errors.ts";
import { type ExecutionResult, execute } from "../../actor/execution.ts";
import { startIsolated } from "../../actor/isolation.ts";
import { DEFAULT_LIMITS } from "../../actor/limits.ts";
import type { Sandbox } from "../../actor/sandbox.ts";
import { Sidecar } from "../../actor/sidecar.fixture.ts";
import type { Limits } from "../../proto/execution.ts";
import type { IsolationLevel } from "../../proto/isolation.ts";
import { EXPECTATIONS, type Expectation, expectationOf } from "./expectations.ts";
import { createWorld, NEIGHBOUR_NOTE, NONCE, SECRET, type World } from "./world.ts";

const HERE = import.meta.dirname;
const LIMITS: Limits = {
  ...DEFAULT_LIMITS,
  timeoutSeconds: 30, // a busy machine needs more than 10 to print a megabyte byte by byte
  memoryBytes: 256 << 20,
  outputBytes: 1 << 20,
  keptOutputBytes: 8 << 10,
  scratchBytes: 64 << 20,
  scratchFiles: 500,
  processes: 32,
  submissionBytes: 1 << 20,
};
/** For programs that only the clock ends. */
export const SHORT_SECONDS = 1;
/** How late a program may end after its time limit. */
const LATE_SECONDS = 1;

/** Returns the names of the programs in a folder. */
export const programsIn = (folder: string) =>
  readdirSync(join(HERE, folder))
    .filter((name) => name.endsWith(".py"))
    .map((name) => basename(name, ".py"))
    .sort();
/** In running order: `find_left` must run right after `leave_behind`. */
export const HOSTILE = Object.keys(EXPECTATIONS);

export interface Column {
  name: string;
  level: IsolationLevel;
  /** Hides newer Landlock versions; namespaces or seccomp must then cover their features. */
  landlockAbi?: number;
  /** The sandbox is a separate container that listens, as in a pod, and has no namespaces of its own. */
  sidecar?: boolean;
}

export const COLUMNS: Column[] = [
  { name: "namespaces", level: "namespaces" },
  { name: "namespaces, no Landlock", level: "namespaces", landlockAbi: 0 },
  { name: "landlock", level: "landlock" },
  { name: "landlock, ABI 4", level: "landlock", landlockAbi: 4 },
  { name: "landlock, ABI 1", level: "landlock", landlockAbi: 1 },
  { name: "pod", level: "landlock", sidecar: true },
  { name: "pod, ABI 1", level: "landlock", landlockAbi: 1, sidecar: true },
];

interface ArenaOptions {
  /** Directory of the Python environment. */
  environment: string;
  /** Modules that zygotes import beforehand. */
  warm?: string[];
  /** Additional tasks: directories with public data by name. */
  inputs?: Record<string, string>;
}

export class Arena {
  readonly column: Column;
  readonly sandbox: Sandbox;
  readonly world: World;
  readonly #options: ArenaOptions;
  readonly #space: string;
  readonly #sidecar: Sidecar | undefined;

  private constructor(
    column: Column,
    options: ArenaOptions,
    parts: Pick<Arena, "sandbox" | "world">,
    space: string,
    sidecar?: Sidecar,
  ) {
    this.column = column;
    this.#options = options;
    this.sandbox = parts.sandbox;
    this.world = parts.world;
    this.#space = space;
    this.#sidecar = sidecar;
  }

  /** @returns the arena, or one line that says why this machine cannot have such a sandbox */
  static async open(column: Column, options: ArenaOptions): Promise<Arena | string> {
    const { level, landlockAbi } = column;
    const { environment, warm } = options;
    const space = mkdtempSync(join(tmpdir(), "longrun-abuse-space-"));
    chmodSync(space, 0o755);
    const sidecar = column.sidecar ? new Sidecar({ environment, warm }) : undefined;
    if (sidecar && !sidecar.contained) {
      await sidecar.stop();
      rmSync(space, { recursive: true });
      return "needs root and namespaces, to make a container";
    }
    await sidecar?.listening();
    const controlSocket = sidecar?.socketInside;
    const world = await createWorld({ environment, level, controlSocket, neighbour: join(space, "slot-1") });
    try {
      const place = sidecar
        ? { socket: sidecar.socket }
        : { ...pythonOf(environment), warm, space: join(space, "slot-0") };
      const { sandbox } = await startIsolated({
        ...place,
        level,
        landlockAbi,
        inputs: { ...options.inputs, task: world.publicData },
      });
      return new Arena(column, options, { sandbox, world }, space, sidecar);
    } catch (error) {
      world.close();
      await sidecar?.stop();
      rmSync(space, { recursive: true, force: true });
      if (!(error instanceof ActorError) || error.code !== "isolation") throw error;
      return error.message;
    }
  }

  async close(): Promise<void> {
    const pid = this.#pid;
    await this.sandbox.stop();
    await this.#sidecar?.listening(); // when nothing is left
    this.world.close();
    rmSync(this.#space, { recursive: true, force: true });
    const left = descendants(pid);
    await this.#sidecar?.stop();
    assert.deepEqual(left, []);
  }

  get #pid(): number {
    return this.#sidecar?.pid ?? this.sandbox.pid!;
  }

  /** Runs a program with this world's paths, processes and ports filled in. */
  run(
    text: string,
    limits: Limits = LIMITS,
    { seed = 1, nonce = NONCE, task = "task" } = {},
  ): Promise<ExecutionResult> {
    const program = Buffer.from(this.world.fill(text));
    return execute(this.sandbox, { task, program, nonce, limits, seed });
  }

  /** Runs a hostile program. @returns the result in one word. @throws AssertionError if a check failed */
  async attack(name: string): Promise<string> {
    const expected = expectationOf(name, this.column.level);
    assert.ok(expected, `expectations.ts says nothing about ${name} at ${this.column.level}`);
    const text = readFileSync(join(HERE, `${name}.py`), "utf8");
    if (name === "guess_random") return this.#guessRandom(text);
    if (name === "other_slots") return this.#besideNeighbour(() => this.#attackWith(text, expected));
    if (expected.twice) await this.#attackWith(text, expected);
    return this.#attackWith(text, expected);
  }

  async #attackWith(text: string, expected: Expectation): Promise<string> {
    const outcomes = [expected.outcome ?? "completed"].flat();
    const timeoutSeconds = outcomes.includes("timedOut") ? SHORT_SECONDS : LIMITS.timeoutSeconds;
    const result = await this.run(text, { ...LIMITS, timeoutSeconds });
    const said = `${result.outcome} ${result.detail}\n${result.terminalOutput.toString("latin1").slice(-2000)}`;
    assert.ok(outcomes.includes(result.outcome), `must be ${outcomes.join(" or ")}, is ${said}`);
    if (expected.signal) assert.ok(expected.signal.includes(result.signal), `signal ${result.signal}: ${said}`);
    if (expected.refused) assert.match(result.submissionRefused ?? "nothing refused", expected.refused);
    if (expected.detail) assert.match(result.detail, expected.detail);
    if (expected.held) assert.match(result.terminalOutput.toString("latin1"), /held\n$/, said);
    if (expected.open) assert.match(result.terminalOutput.toString("latin1"), /open\n$/, said);
    if (expected.check) assert.ok(expected.check(result), said);
    assert.ok(result.durationSeconds < timeoutSeconds + LATE_SECONDS, `took ${result.durationSeconds} s`);
    this.settled(result);
    if (expected.open) return "OPEN";
    if (expected.refused) return "refused";
    return outcomes.includes("completed") && result.outcome === "completed" ? "held" : result.outcome;
  }

  /** Random numbers depend on the execution's seed. */
  async #guessRandom(text: string): Promise<string> {
    const drawn = [];
    for (const seed of [1, 2, 1]) drawn.push((await this.run(text, LIMITS, { seed })).terminalOutput.toString());
    assert.notEqual(drawn[0], drawn[1]);
    assert.equal(drawn[0], drawn[2]);
    return "held";
  }

  /** Meanwhile a program in another slot of the same actor has printed and sleeps. */
  async #besideNeighbour(work: () => Promise<string>): Promise<string> {
    const text = `open("note", "w").write("${NEIGHBOUR_NOTE}")`;
    return this.beside(text, "task", async () => {
      const verdict = await work();
      if (this.column.level === "landlock" && !this.#sidecar)
        assert.equal(readFileSync(join(this.#space, "slot-1/scratch/note"), "utf8"), NEIGHBOUR_NOTE);
      return verdict;
    });
  }

  /** Runs `work` while another slot of the same actor has run `text` and sleeps with its output. */
  async beside<T>(text: string, task: string, work: () => Promise<T>): Promise<T> {
    const { level, landlockAbi } = this.column;
    const { environment } = this.#options;
    const sidecar = this.#sidecar && new Sidecar({ environment, warm: [] });
    await sidecar?.listening();
    const place = sidecar
      ? { socket: sidecar.socket }
      : { ...pythonOf(environment), warm: ["numpy"], space: join(this.#space, "slot-1") };
    const inputs = { ...this.#options.inputs, task: this.world.publicData };
    const { sandbox } = await startIsolated({ ...place, level, landlockAbi, inputs });
    try {
      const program = Buffer.from(`${text}\nimport time\nprint("up", flush=True)\ntime.sleep(60)\n`);
      const printed = Promise.withResolvers<void>();
      const limits = { ...LIMITS, timeoutSeconds: 60, memoryBytes: 1 << 30 };
      const running = sandbox.run({ task, program, limits, seed: 1 }, { onOutput: () => printed.resolve() });
      await Promise.race([printed.promise, running]);
      running.catch(() => {});
      const done = await work();
      assert.ok(sandbox.alive, "the neighbour's sandbox broke");
      return done;
    } finally {
      await sandbox.stop();
      await sidecar?.stop();
    }
  }

  /** Checks after an execution that nothing leaked, nothing was harmed, and nothing is left. */
  settled(result: ExecutionResult): void {
    const said = result.terminalOutput.toString("latin1");
    assert.ok(!said.includes("BREACH"), said);
    assert.ok(!said.includes(SECRET) && !result.submission?.includes(SECRET), "the secret came out");
    this.world.check();
    assert.ok(this.sandbox.alive, "the sandbox broke");
    // The child that waits for the next program, and the zygote if the known process is its parent.
    const expected = this.#sidecar || this.column.level === "namespaces" ? 2 : 1;
    assert.equal(descendants(this.#pid).length, expected, "a process was left");
    for (const place of this.column.level === "landlock" ? ["scratch", "tmp"] : []) {
      const folder = join(this.#sidecar?.scratch ?? join(this.#space, "slot-0"), place);
      assert.deepEqual(readdirSync(folder), [], `something was left in ${place}`);
    }
    if (this.#sidecar) assert.deepEqual(readdirSync(this.#sidecar.shared), [], "there is a socket while programs run");
  }
}

function pythonOf(environment: string) {
  return { python: join(environment, "bin", "python") };
}
