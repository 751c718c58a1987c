/**
 * Faults put into kernels and launches, one at a time, each of which a comparison with the CPU must notice.
 *
 *     node test/rehearsal/kernel-mutations.ts FROM      # in a rehearsal's environment: from mutation FROM on, a line of JSON for each
 *
 * A mutation may end the process, as an access beyond memory does: kernel-mutations.rehearsal.ts then starts it again behind that one.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { Pointer } from "../../learner/engine/runtime/api.ts";
import { Kernels } from "../../learner/engine/runtime/kernels.ts";
import { Runtime } from "../../learner/engine/runtime/runtime.ts";
import { COMPARED, checkOptimiser } from "./kernel-cases.ts";
import { prepared } from "./kernel-numbers.ts";

const GPU = { kind: "cuda", id: 0 } as const;
const PTX = path.join(import.meta.dirname, "../../learner/engine/kernels/ptx");
/** Its PTX serves most GPUs, and has less text for each operation. */
const [CAPABILITY, TARGET] = ["8.6", "sm_80"] as const;

type Grid = readonly [number, number?];
type Given = readonly (Pointer | number)[];

export interface Mutation {
  name: string;
  /** of COMPARED, or ADAMW */
  in: string;
  kernel: string;
  /** changes the PTX */
  ptx?: (text: string) => string;
  /** changes a launch */
  launch?: (grid: Grid, given: Given) => [Grid, Given];
}

const ADAMW = "AdamW";

/** Replaces match number `at` of a pattern. @throws Error where there is none: the PTX has changed, and so must the mutation */
const replaces =
  (pattern: RegExp, by: string, at = 0) =>
  (text: string): string => {
    const found = [...text.matchAll(new RegExp(pattern, "gm"))][at];
    if (!found) throw new Error(`the PTX has no match ${at} of ${pattern}`);
    const changed = found[0].replace(new RegExp(pattern, "m"), by);
    return text.slice(0, found.index) + changed + text.slice(found.index + found[0].length);
  };
/** Gives the argument number `i` another value. */
const argument =
  (i: number, change: (value: number, given: Given) => number | Pointer) =>
  (grid: Grid, given: Given): [Grid, Given] => [grid, given.with(i, change(given[i] as number, given))];
const grids =
  (change: (grid: Grid) => Grid) =>
  (grid: Grid, given: Given): [Grid, Given] => [change(grid), given];
const swapped = grids(([x, y]) => [y!, x]);
/** Gives two arguments each other's value. */
const exchanged =
  (i: number, j: number) =>
  (grid: Grid, given: Given): [Grid, Given] => [grid, given.with(i, given[j]!).with(j, given[i]!)];

const SMALL_ATTENTION = "attention of responses of one token";
const ATTENTION = "attention of rows of several lengths, head size 64";
const NORM = "norm, its sum not used again";
const STREAM = "norm of more rows than partial sums";
const GATES = "gates of odd rows";
const ROTARY = "rotary positions with a bias";
const REPEATED = "embedding of tokens that repeat";
const ADAPTED_NORM = "norms behind an adapter of a large rank";
const JOINED_GATES = "joined gates of two blocks, and of ranks that end within one";
const JOINED = "joined layers, rows that fill their block";
const SHARED = "adapters of three layers with one input, rows of two blocks";
const LOGITS = "logits of rows of two blocks";
const LOG_PROBS = "log-probs of one row";

const of = (name: string, where: string, kernel: string, change: Pick<Mutation, "ptx" | "launch">): Mutation => ({
  name,
  in: where,
  kernel,
  ...change,
});

export const MUTATIONS: readonly Mutation[] = [
  of("a wrong constant of silu", GATES, "swiglu_forward", { ptx: replaces(/0fBFB8AA3B/, "0fBF800000") }),
  of("an operand of another lane", GATES, "swiglu_forward", {
    ptx: replaces(/cvt\.f32\.bf16(\s+%r\d+), %rs2;/, "cvt.f32.bf16$1, %rs1;"),
  }),
  of("a slope without its 1", GATES, "swiglu_backward", { ptx: replaces(/0f3F800000/, "0f00000000", 3) }),
  of("a block too few", GATES, "swiglu_backward", { launch: grids(([x]) => [x - 1]) }),
  of("gate and up exchanged", GATES, "swiglu_forward", { launch: exchanged(0, 1) }),
  of("a shuffle of another distance", NORM, "norm_forward_2048", {
    ptx: replaces(/(shfl\.sync\.bfly\.b32\s+%r\d+, %r\d+), 16,/, "$1, 8,"),
  }),
  of("a dropped predicate of a load", NORM, "norm_forward_2048", {
    ptx: replaces(/@%p\d+ ld\.global/, "ld.global", 3),
  }),
  of("a root left out", NORM, "norm_forward_2048", { ptx: replaces(/sqrt\.rn\.f32/, "mov.b32") }),
  of("another epsilon", NORM, "norm_forward_2048", { launch: argument(6, () => 0.1) }),
  of("a sum that is not added", STREAM, "norm_forward_1024", { launch: argument(8, () => 0) }),
  of("a slope's sum added, not subtracted", NORM, "norm_backward_2048", { ptx: replaces(/neg\.f32/, "mov.b32") }),
  of("a stream that does not go on", STREAM, "norm_backward_1024", { launch: argument(11, () => 0) }),
  of("rows left out of a weight's gradient", STREAM, "norm_backward_1024", {
    launch: argument(10, (each) => each - 1),
  }),
  of("a sine of the wrong sign", ROTARY, "rotary_turn", { ptx: replaces(/neg\.f32/, "mov.b32") }),
  of("a gradient turned forwards", ROTARY, "rotary_turn", { launch: argument(6, () => 1) }),
  of("a head too few", ROTARY, "rotary_turn", { launch: argument(7, (heads) => heads - 1) }),
  of("heads and tokens of the grid swapped", ROTARY, "rotary_turn", { launch: swapped }),
  of("a softmax without its largest score", ATTENTION, "attention_forward_64", {
    ptx: replaces(/max\.f32/, "min.f32"),
  }),
  of("a token that sees itself not", SMALL_ATTENTION, "attention_forward_64", {
    ptx: replaces(/setp\.le\.s32|setp\.ge\.s32|setp\.gt\.s32(?=\s+%p\d\d)/, "setp.eq.s32"),
  }),
  of("keys transposed wrongly", SMALL_ATTENTION, "attention_forward_64", {
    ptx: replaces(/m8n8\.x4\.trans\.shared/, "m8n8.x4.shared"),
  }),
  of("another scale of scores", SMALL_ATTENTION, "attention_forward_64", { launch: argument(7, (scale) => 2 * scale) }),
  of("blocks and heads of the grid swapped", ATTENTION, "attention_forward_64", { launch: swapped }),
  of("sums of exponentials of another head", SMALL_ATTENTION, "attention_backward_q_64", {
    launch: argument(4, (_, given) => given[5]!),
  }),
  of("a query head left out of a key's gradient", SMALL_ATTENTION, "attention_backward_kv_64", {
    launch: argument(11, (heads) => heads / 2),
  }),
  of("a row's sum of products left out", SMALL_ATTENTION, "attention_delta_64", {
    ptx: replaces(/shfl\.sync\.bfly\.b32(\s+%r\d+, %r\d+), 1,/, "shfl.sync.bfly.b32$1, 2,"),
  }),
  of("an entropy of the other sign", LOG_PROBS, "head_combine", { ptx: replaces(/neg\.f32/, "mov.b32") }),
  of("entries of the vocabulary left out", LOG_PROBS, "head_forward", { launch: argument(8, (each) => each - 128) }),
  of("a part of the vocabulary left out", LOG_PROBS, "head_combine", { launch: argument(5, (splits) => splits / 2) }),
  of("a slope for another target", LOG_PROBS, "head_backward", { ptx: replaces(/setp\.eq\.b32/, "setp.ne.b32") }),
  of("an embedding's places left out", REPEATED, "embedding_gradient", {
    ptx: replaces(/(add\.s32\s+%r\d+, %r\d+), 8;/, "$1, 16;"),
  }),
  of("a place of the next token", REPEATED, "embedding_gradient", {
    ptx: replaces(/setp\.lt\.s32(\s+%p4)/, "setp.le.s32$1"),
  }),
  of("columns of an embedding left out", REPEATED, "embedding_gradient", { launch: grids(([x, y]) => [x, y! - 1]) }),
  of("an adapter's last ranks left out", ADAPTED_NORM, "norm_adapted_4096", {
    launch: argument(11, (rank) => rank - 1),
  }),
  of("an adapter's rows of another width", ADAPTED_NORM, "norm_adapted_4096", {
    launch: argument(10, (stride) => stride - 16),
  }),
  of("every second block of ranks left out", ADAPTED_NORM, "norm_adapted_4096", {
    ptx: replaces(/(add\.s32\s+(%r\d+), \2), 8;/, "$1, 16;"),
  }),
  of("another scale of an adapter", JOINED_GATES, "swiglu_joined", { launch: argument(3, (scale) => -scale) }),
  of("gate with up's adapter", JOINED_GATES, "swiglu_joined", { launch: exchanged(8, 9) }),
  of("an adapter's second block of ranks left out", JOINED_GATES, "swiglu_joined", {
    ptx: replaces(/(add\.s32\s+%r\d+, %r\d+), 16;/, "$1, 32;"),
  }),
  of("an adapter's B transposed", JOINED_GATES, "swiglu_joined", {
    ptx: replaces(/m8n8\.x4\.trans\.shared/, "m8n8.x4.shared"),
  }),
  of("rows and columns of the grid swapped", JOINED_GATES, "swiglu_joined", { launch: swapped }),
  of("a layer with another layer's adapter", JOINED, "linear_adapted_few", { launch: argument(14, () => 0) }),
  of("columns of the next layer", JOINED, "linear_adapted_few", { launch: argument(11, (end) => end + 64) }),
  of("a bias left out", JOINED, "linear_adapted_few", { launch: argument(3, (_, given) => given[2]!) }),
  of("a part of the sum left out", JOINED, "linear_adapted_few", {
    ptx: replaces(/setp\.gt\.s32(\s+%p\d+, %r\d+), 128;/, "setp.gt.s32$1, 4096;"),
  }),
  of("the small part of a float32 left out", LOGITS, "head_logits", {
    ptx: replaces(/fma\.rn\.f32(\s+%r\d+), %r\d+, %r\d+, %r\d+;/, "mov.b32$1, 0f00000000;"),
  }),
  of("a temperature of another row", LOGITS, "head_logits", { launch: argument(3, (_, given) => given[2]!) }),
  of("a block of rows left out", LOGITS, "head_logits", { launch: grids(([x, y]) => [x - 1, y]) }),
  of("an adapter with its neighbour's A", SHARED, "downs_forward", { launch: exchanged(1, 2) }),
  of("a third adapter left out", SHARED, "downs_forward", { launch: argument(10, () => 0) }),
  of("ranks of the second block left out", SHARED, "downs_input", { launch: argument(9, (rank) => rank - 4) }),
  of("a sum over rows without its last row", SHARED, "downs_matrices", { launch: argument(7, (rows) => rows - 1) }),
  of("a root of AdamW left out", ADAMW, "adamw", { ptx: replaces(/sqrt\.rn\.f64/, "mov.b64") }),
  of("AdamW's moments exchanged", ADAMW, "adamw", { launch: exchanged(2, 3) }),
  of("a sum of squares without its last half", ADAMW, "squares", { launch: argument(2, (count) => count / 2) }),
];

/** Kernels of which one has a mutation. Those that it does not name are as they are. */
class Mutated extends Kernels {
  #mutation: Mutation | undefined;
  #changed: Kernels | undefined;

  change(mutation: Mutation | undefined): void {
    this.#mutation = mutation;
    this.#changed = mutation?.ptx && changed(mutation.kernel, mutation.ptx);
  }

  override launch(name: string, stream: Pointer, grid: Grid, given: Given): void {
    const mutation = name === this.#mutation?.kernel ? this.#mutation : undefined;
    const [where, what] = mutation?.launch?.(grid, given) ?? [grid, given];
    if (mutation && this.#changed) this.#changed.launch(name, stream, where, what);
    else super.launch(name, stream, where, what);
  }
}

/** Kernels of a folder that has this one alone, changed. */
function changed(kernel: string, change: (text: string) => string): Kernels {
  const folder = mkdtempSync(path.join(os.tmpdir(), "longrun-mutation-"));
  try {
    const file = `${kernel}.${TARGET}.ptx`;
    for (const [name, text] of [
      ["launches.json", (it: string) => it],
      [file, change],
    ] as const)
      writeFileSync(path.join(folder, name), text(readFileSync(path.join(PTX, name), "utf8")));
    const kernels = new Kernels(GPU, pathToFileURL(`${folder}/`));
    if (!kernels.has(kernel)) throw new Error(`${kernel} cannot be loaded with the mutation`);
    return kernels;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

class MutatedRuntime extends Runtime {
  #own: Mutated | undefined;

  override get kernels(): Mutated {
    void super.kernels; // the provider is loaded
    this.#own ??= new Mutated(this.device as typeof GPU);
    return this.#own;
  }
}

interface Case {
  /** leaves wrong numbers in memory */
  disturb(): Promise<void>;
  faults(): Promise<string[]>;
}

/** Returns how a case fails; empty: it does not. */
async function faultsOf(run: () => Promise<string[]>): Promise<string[]> {
  try {
    return await run();
  } catch (error) {
    return [(error as Error).message.split("\n")[0]!];
  }
}

/** Prints for each mutation from number `from` on that it begins, and what noticed it. */
async function mutate(from: number): Promise<void> {
  const [cpu, gpu] = [new Runtime({ kind: "cpu" }), new MutatedRuntime(GPU)];
  const cases = new Map<string, Case>();
  const caseOf = async (name: string): Promise<Case> => {
    if (name === ADAMW) return { disturb: async () => {}, faults: () => checkOptimiser(gpu, 1040, 0).then(() => []) };
    const comparison = await prepared(cpu, gpu, COMPARED[name]!());
    return { disturb: comparison.disturb, faults: async () => comparison.faults(await comparison.run()) };
  };
  const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);
  for (const [at, mutation] of MUTATIONS.entries()) {
    if (at < from) continue;
    gpu.kernels.change(undefined);
    const it = cases.get(mutation.in) ?? (await caseOf(mutation.in));
    if (!cases.has(mutation.in)) {
      const faults = await faultsOf(it.faults);
      if (faults.length > 0) throw new Error(`${mutation.in} fails without a mutation: ${faults.join("; ")}`);
    }
    cases.set(mutation.in, it);
    await it.disturb();
    gpu.kernels.change(mutation);
    say({ begins: at });
    say({ at, noticed: await faultsOf(it.faults) });
  }
}

if (import.meta.main) {
  process.env.REHEARSAL_ARITHMETIC = "1"; // read when the library is loaded, with the first session on a device
  process.env.REHEARSAL_CAPABILITY = CAPABILITY;
  await mutate(Number(process.argv[2] ?? 0));
  process.exit(0);
}
