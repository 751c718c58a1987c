/** The tree of solutions: drafts below the root, improvements and repairs below the solution that their prompts showed. Pure. */
import type { Sample } from "../store/types.ts";

export type Operator = "draft" | "improve" | "debug";

/** `pending`: it is written, waits or runs. `lost`: by the infrastructure, so that it counts nowhere. */
export type NodeState = "pending" | "valid" | "failed" | "lost";

export interface SolutionNode {
  id: string;
  /** Absent: a draft. */
  parent?: string | undefined;
  operator: Operator;
  /** Debug prompts in a row that led to it. */
  depth: number;
  state: NodeState;
  /** On the rows that make the reward, in the task's unit; present if valid. The search chooses by this number alone. */
  score?: number | undefined;
  /** Whether the answer held a program, so that a debug prompt can show it. */
  hasProgram: boolean;
}

/** What to ask for next. `parent` is absent for a draft. */
export interface Choice {
  operator: Operator;
  parent?: string;
}

const OPERATORS: Record<Sample["kind"], Operator> = { scratch: "draft", improve: "improve", debug: "debug" };

type Facts = Pick<Sample, "id" | "previous" | "kind" | "depth" | "state" | "program" | "grade">;

export function nodeOf({ id, previous, kind, depth = 0, state, program, grade }: Facts): SolutionNode {
  const isOver = state === "finished" || state === "notExecuted";
  const judged = grade === undefined ? "pending" : grade.valid && grade.score !== undefined ? "valid" : "failed";
  const known = isOver ? judged : state === "lost" || state === "discarded" ? "lost" : "pending";
  const score = known === "valid" ? grade!.score : undefined;
  const hasProgram = program !== undefined && state !== "notExecuted";
  return { id, parent: previous, operator: OPERATORS[kind], depth, state: known, score, hasProgram };
}

export class Tree {
  readonly direction: "Higher" | "Lower";
  readonly #nodes = new Map<string, SolutionNode>();
  readonly #children = new Map<string | undefined, string[]>();
  /** Solutions that fit in no prompt of an operator. */
  readonly #closed = new Set<string>();

  constructor(direction: "Higher" | "Lower", nodes: readonly SolutionNode[] = []) {
    this.direction = direction;
    for (const node of nodes) this.put(node);
  }

  /** Adds a node, or changes a known one. */
  put(node: SolutionNode): void {
    if (!this.#nodes.has(node.id)) {
      const siblings = this.#children.get(node.parent);
      if (siblings) siblings.push(node.id);
      else this.#children.set(node.parent, [node.id]);
    }
    this.#nodes.set(node.id, node);
  }

  /** Says that no prompt of this operator can show the solution. */
  close(id: string, operator: Operator): void {
    this.#closed.add(`${operator} ${id}`);
  }

  get(id: string): SolutionNode | undefined {
    return this.#nodes.get(id);
  }

  /** All nodes but lost ones, oldest first. */
  get nodes(): SolutionNode[] {
    return [...this.#nodes.values()].filter(({ state }) => state !== "lost");
  }

  /** The children of a node, or the drafts, without lost ones. */
  childrenOf(id: string | undefined): SolutionNode[] {
    return (this.#children.get(id) ?? [])
      .map((child) => this.#nodes.get(child)!)
      .filter(({ state }) => state !== "lost");
  }

  isBetter(a: number, b: number): boolean {
    return this.direction === "Higher" ? a > b : a < b;
  }

  /** Returns the valid node with the best score that `holds`; the first of equals. */
  best(holds: (node: SolutionNode) => boolean = () => true): SolutionNode | undefined {
    return this.nodes.reduce<SolutionNode | undefined>((best, node) => {
      if (node.state !== "valid" || !holds(node)) return best;
      return best === undefined || this.isBetter(node.score!, best.score!) ? node : best;
    }, undefined);
  }

  canImprove({ id, state }: SolutionNode): boolean {
    return state === "valid" && !this.#closed.has(`improve ${id}`);
  }

  /** @param most debug prompts in a row */
  canDebug({ id, state, depth, hasProgram }: SolutionNode, most: number): boolean {
    return state === "failed" && hasProgram && depth < most && !this.#closed.has(`debug ${id}`);
  }
}
