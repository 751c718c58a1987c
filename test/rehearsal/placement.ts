/** Finds nodes that ran on the CPU, and nodes that copy between it and a device, from ONNX Runtime's profiles (LONGRUN_PROFILE). */
import { globSync, readFileSync } from "node:fs";

interface Event {
  cat: string;
  name: string;
  args?: { op_name?: string; provider?: string; input_type_shape?: Record<string, unknown>[] };
}
/** One event of each node that ran. */
export type Events = Event[];

export interface Placement {
  /** Nodes that ran on the CPU, by operator and type of the first input: `Clip int32`. */
  onCpu: Record<string, number>;
  /** Copy nodes that ONNX Runtime inserted; its warnings count the same. */
  copies: number;
  /** All nodes that ran. */
  nodes: number;
}

const KERNEL = "_kernel_time";

/** Returns the nodes of each graph by its name; several sessions of a graph are joined. */
export function profiledEvents(prefix: string): Record<string, Events> {
  const found: Record<string, Events> = {};
  for (const file of globSync(`${prefix}-*.json`).sort()) {
    const graph = /-\d+-\d+-(.+?)_\d{4}-\d\d-\d\d/.exec(file)![1]!;
    found[graph] ??= [];
    const seen = new Set<string>();
    for (const event of JSON.parse(readFileSync(file, "utf8")) as Event[]) {
      if (event.cat !== "Node" || !event.name.endsWith(KERNEL) || seen.has(event.name)) continue;
      seen.add(event.name);
      found[graph].push(event);
    }
  }
  return found;
}

/** Returns the placement of each graph by its name. */
export function placements(prefix: string): Record<string, Placement> {
  const placed = Object.entries(profiledEvents(prefix)).map(([graph, events]): [string, Placement] => {
    const placement: Placement = { onCpu: {}, copies: 0, nodes: events.length };
    for (const { args } of events) {
      const { op_name: operator = "", provider, input_type_shape: inputs = [] } = args ?? {};
      if (operator.startsWith("Memcpy")) placement.copies++;
      else if (provider === "CPUExecutionProvider") {
        const kind = [operator, ...Object.keys(inputs[0] ?? {})].join(" ");
        placement.onCpu[kind] = (placement.onCpu[kind] ?? 0) + 1;
      }
    }
    return [graph, placement];
  });
  return Object.fromEntries(placed);
}
