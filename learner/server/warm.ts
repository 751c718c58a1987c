/**
 * Which modules the run's programs import, so that sandboxes have those imported beforehand and no others: what is held for
 * nobody costs each slot memory and each execution processor time.
 *
 * Learned here and not by each actor: a program's duration is a training signal, and must not depend on which actor ran it,
 * nor on whether that actor is new. And from the text of programs, not from what they did: then a module that is imported
 * already counts like one that is not, and a sandbox has nothing to report. Text is hostile; a lie costs speed (a sandbox
 * tries modules before it takes them, actor/sandbox/warm.py), and has to stand in a good share of all programs.
 */

export interface WarmOptions {
  /** Decisions are made after so many programs, on those. */
  window: number;
  /** A module that this share of them imports is added ... */
  addShare: number;
  /** ... and stays until fewer than this do: the two lie apart so that none comes and goes by chance. */
  dropShare: number;
  /** No change within so long of the one before: each costs every slot a start. */
  secondsBetween: number;
  /** The most used ones, where there are more. */
  mostModules: number;
}

export const WARM: WarmOptions = { window: 200, addShare: 0.1, dropShare: 0.02, secondsBetween: 600, mostModules: 64 };

/**
 * Stays imported where the environment has it, however few use it: in a program that imports it by itself it takes 3 s and
 * most of the address space that RLIMIT_AS allows, so that the few would fail, and never become more.
 */
const KEPT = ["torch"];

/** Import statements stand at the beginning of programs. */
const LARGEST_TEXT = 64 << 10;
const MOST_OF_A_PROGRAM = 32;
const NAME = /^[A-Za-z][A-Za-z0-9_]{0,60}(?:\.[A-Za-z][A-Za-z0-9_]{0,60}){0,3}$/;
const STATEMENT =
  /^[ \t]*(?:import[ \t]+([^\n#;]+)|from[ \t]+([\w.]+)[ \t]+import[ \t]+(?:\(([^)]{0,2000})\)|([^\n#;(]+)))/gm;

/**
 * Modules that a program's import statements name, wherever these stand. `from package import name` counts as the package,
 * and as `package.name`, which may or may not be a module.
 */
export function importsOf(program: string): string[] {
  const found = new Set<string>();
  const add = (name: string) => {
    if (NAME.test(name) && found.size < MOST_OF_A_PROGRAM) found.add(name);
  };
  const names = (list: string) =>
    list
      .replace(/#.*$/gm, "")
      .split(",")
      .map((entry) => entry.trim().split(/\s/)[0]!);
  for (const [, modules, from, inParentheses, plain] of program.slice(0, LARGEST_TEXT).matchAll(STATEMENT)) {
    if (modules !== undefined) for (const name of names(modules)) add(name);
    if (from === undefined) continue;
    add(from);
    if (!from.includes(".")) for (const name of names(inParentheses ?? plain ?? "")) add(`${from}.${name}`);
  }
  return [...found];
}

export class WarmModules {
  /** The most used first; undefined while too few programs ran to tell. */
  modules: readonly string[] | undefined;
  /** Share of programs that import each of `modules`, when that was decided. */
  shares: Record<string, number> = {};
  readonly #options: WarmOptions;
  readonly #now: () => number;
  #counts = new Map<string, number>();
  #programs = 0;
  #changedAt = Number.NEGATIVE_INFINITY;

  /** @param now monotonic, milliseconds */
  constructor(options: Partial<WarmOptions> = {}, now: () => number = () => performance.now()) {
    this.#options = { ...WARM, ...options };
    this.#now = now;
  }

  /** A program is about to run. @returns whether `modules` has changed */
  learn(program: string): boolean {
    for (const name of importsOf(program)) this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    if (++this.#programs < this.#options.window) return false;
    const counts = this.#counts;
    this.#counts = new Map();
    this.#programs = 0;
    return this.#now() - this.#changedAt >= this.#options.secondsBetween * 1000 && this.#decide(counts);
  }

  #decide(counts: Map<string, number>): boolean {
    const { window, addShare, dropShare, mostModules } = this.#options;
    const before = this.modules && new Set(this.modules);
    const used = [...counts]
      .map(([name, count]) => ({ name, share: count / window }))
      // What is there before the first decision is not known here, and was chosen well: it stays if it is used at all.
      .filter(({ name, share }) => share >= (before === undefined || before.has(name) ? dropShare : addShare))
      .sort((a, b) => b.share - a.share || (a.name < b.name ? -1 : 1))
      .slice(0, mostModules);
    const modules = [...new Set([...used.map(({ name }) => name), ...KEPT])];
    if (before?.size === modules.length && modules.every((name) => before.has(name))) return false;
    this.modules = modules;
    this.shares = Object.fromEntries(used.map(({ name, share }) => [name, share]));
    this.#changedAt = this.#now();
    return true;
  }
}
