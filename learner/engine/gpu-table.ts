/** Tabulates the GPUs that a model needs: a plan for each number and size of GPUs, with LoRA and with every weight trained. */
import { Fitting, fits, GPU_GIGABYTES, gpus, LORA, size } from "./fit.ts";
import type { PlanRequest } from "./plan.ts";

export const GPU_COUNTS = [1, 2, 4, 8];

export interface GpuEntry {
  trained: "LoRA" | "every weight";
  gpus: number;
  /** memory of each GPU, 10^9 bytes */
  gigabytes: number;
  fits: boolean;
  /** planned on each GPU; if the run does not fit, with the smallest passes */
  gpuBytes: number;
  /** planned in the learner's process */
  hostBytes: number;
  /** bytes of one checkpoint on the disk */
  checkpointBytes: number;
  /** changes to the manifest that each make it fit on these GPUs */
  remedies: string[];
}

/** Returns an entry for each number and size of GPUs. @param request its device and adapter are replaced */
export function gpuTable(request: Omit<PlanRequest, "device" | "devices" | "adapter">): GpuEntry[] {
  let like: Fitting | undefined;
  return (["LoRA", "every weight"] as const).flatMap((trained) =>
    GPU_GIGABYTES.flatMap((gigabytes) => {
      const budget = { host: undefined, gpu: { bytes: gigabytes * 1e9, source: "given" } };
      const fitting = new Fitting(0, budget, "Auto", like);
      like = fitting;
      return GPU_COUNTS.map((count): GpuEntry => {
        const devices = gpus(count);
        const own = { ...request, devices, device: devices[0]!, adapter: trained === "LoRA" ? LORA : undefined };
        const plan = fitting.best(own);
        const { gpuBytes, hostBytes, checkpointBytes } = plan;
        const isFitting = fits(plan, budget);
        const remedies = isFitting ? [] : fitting.smaller(own).map(({ name }) => name);
        const bytes = { gpuBytes, hostBytes, checkpointBytes };
        return { trained, gpus: count, gigabytes, fits: isFitting, ...bytes, remedies };
      });
    }),
  );
}

/** Returns a table for a terminal: the memory of each GPU, and changes that make refused runs fit. */
export function gpuLines(entries: readonly GpuEntry[]): string[] {
  const cell = ({ fits, gpuBytes }: GpuEntry) => (fits ? gigabytes(gpuBytes) : `no: ${gigabytes(gpuBytes)}`);
  const line = (name: string, cells: readonly string[]) =>
    `${name.padEnd(LABEL_COLUMNS)}${cells.map((text) => text.padStart(CELL_COLUMNS)).join("")}`.trimEnd();
  const groups = Map.groupBy(entries, ({ trained, gigabytes }) => `${trained}, ${gigabytes} GB each`);
  const checkpoints = new Map(entries.map(({ trained, checkpointBytes }) => [trained, checkpointBytes]));
  const refused = entries.filter(({ remedies }) => remedies.length > 0);
  return [
    line("GB on each GPU", [...GPU_COUNTS.map((count) => `${count} GPU${count > 1 ? "s" : ""}`), "in host memory"]),
    ...[...groups].map(([name, row]) => {
      const host = [row.at(0)!, row.at(-1)!].map(({ hostBytes }) => gigabytes(hostBytes));
      return line(name, [...row.map(cell), [...new Set(host)].join(" to ")]);
    }),
    "",
    `A checkpoint takes ${[...checkpoints].map(([trained, bytes]) => `${size(bytes)} (${trained})`).join(", ")}; the disk holds learner.checkpoint.keepLast (3) and one more.`,
    ...(refused.length > 0 ? ["", "A change to the manifest that makes it fit:"] : []),
    ...refused.map(
      ({ trained, gpus, gigabytes, remedies }) =>
        `  ${trained}, ${gpus} x ${gigabytes} GB: ${remedies.join(", or ").replaceAll("model.", "")}`,
    ),
  ];
}

const LABEL_COLUMNS = 26;
const CELL_COLUMNS = 16;
const gigabytes = (bytes: number) => (bytes / 1e9).toFixed(1);
