/**
 * Compares where nodes run on the device with the rehearsal's record (../../rehearsal/nodes.json): for the graphs of log-probs, a critic
 * step, a policy step and generation, the number of nodes by operator and provider, in ONNX Runtime's profile of the same shape:
 * Qwen2.5-0.5B's sizes with two layers, 4 x (64 + 64) tokens. A node counts once, however often it runs. The profile contains no launches
 * and copies; only the rehearsal counts them.
 */
import { readFileSync } from "node:fs";
import { COMPARED, NODES, type Nodes, nodesOf } from "../../rehearsal/nodes.ts";
import { type Finding, findingsOf, type PartOptions } from "./part.ts";

const MEMCPY = /^Memcpy/;
/** Arithmetic with sizes, which belongs on the CPU: ../../rehearsal/engine.rehearsal.ts. */
const SIZES = /^(Concat|Mul|Sub|Add) on CPU$/;
/** Most differences in the text of a goal. */
const SHOWN = 4;

export async function* counts({ device }: PartOptions): AsyncGenerator<Finding> {
  const recorded: Record<string, Nodes> = JSON.parse(readFileSync(NODES, "utf8"));
  const onGpu = device.kind === "cuda";
  yield {
    notes: [
      "nodes by operator and provider, in ONNX Runtime's profile, 2 layers of 0.5B's sizes",
      ...(onGpu ? [] : ["on a CPU nothing is compared: the record is of CUDA"]),
    ],
  };
  for (const configuration of onGpu ? COMPARED : COMPARED.slice(0, 1))
    yield* findingsOf(`${configuration}: counts`, async function* () {
      const found = await nodesOf(configuration, device);
      const known = recorded[configuration]!;
      yield {
        rows: Object.entries(found).map(([graph, nodes]) => ({
          ...{ configuration, graph, nodes: total(nodes, /./) },
          ...(onGpu && {
            ...{ recorded: total(known[graph] ?? {}, /./), "on CUDA": total(nodes, / on CUDA$/) },
            ...{ Memcpy: total(nodes, MEMCPY), "sizes, on the CPU": total(nodes, SIZES) },
          }),
        })),
        goals: onGpu ? [sameNodes(configuration, found, known)] : [],
        raw: { configuration, nodes: found },
      };
    });
}

const total = (nodes: Record<string, number>, kind: RegExp) =>
  Object.entries(nodes).reduce((sum, [name, count]) => sum + (kind.test(name) ? count : 0), 0);

function sameNodes(configuration: string, found: Nodes, known: Nodes) {
  const different = differences(found, known);
  const more = different.length > SHOWN ? ` and ${different.length - SHOWN} more` : "";
  return {
    ...{ what: `${configuration}: nodes beside the rehearsal's`, goal: "the same", met: different.length === 0 },
    measured: different.length === 0 ? "the same" : different.slice(0, SHOWN).join("; ") + more,
  };
}

/** Returns a line for each graph, operator and provider whose numbers differ: `prefill: 3 Cast on CPU, recorded 0`. */
function differences(found: Nodes, known: Nodes): string[] {
  return [...new Set([...Object.keys(known), ...Object.keys(found)])].flatMap((graph) => {
    const [own, other] = [found[graph] ?? {}, known[graph] ?? {}];
    return [...new Set([...Object.keys(other), ...Object.keys(own)])]
      .filter((kind) => (own[kind] ?? 0) !== (other[kind] ?? 0))
      .map((kind) => `${graph}: ${own[kind] ?? 0} ${kind}, recorded ${other[kind] ?? 0}`);
  });
}
