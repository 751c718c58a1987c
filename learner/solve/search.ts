/** The searches' rules: what to ask for next, from the tree alone. Pure; README.md explains them. */
import type { Search, SearchRules } from "../../proto/solve.ts";
import type { Choice, SolutionNode, Tree } from "./tree.ts";

/** @param next uniform in [0, 1) */
type Rule = (tree: Tree, rules: SearchRules, next: () => number) => Choice;

const DRAFT: Choice = { operator: "draft" };

const improve = ({ id }: SolutionNode): Choice => ({ operator: "improve", parent: id });
const debug = ({ id }: SolutionNode): Choice => ({ operator: "debug", parent: id });

/**
 * AIDE's policy (arXiv 2502.13138): first `drafts` drafts; then, with `debugProbability`, a failed leaf, drawn uniformly; otherwise the
 * best valid solution is improved; a draft where there is none. A solution whose repair is under way is no leaf.
 */
const greedy: Rule = (tree, { drafts, debugProbability, debugDepth }, next) => {
  if (tree.childrenOf(undefined).length < drafts) return DRAFT;
  if (next() < debugProbability) {
    const leaves = tree.nodes.filter(
      (node) => tree.canDebug(node, debugDepth) && tree.childrenOf(node.id).length === 0,
    );
    if (leaves.length > 0) return debug(leaves[Math.floor(next() * leaves.length)]!);
  }
  const best = tree.best((node) => tree.canImprove(node));
  return best ? improve(best) : DRAFT;
};

/** Exponent of progressive widening (Coulom 2007): a node whose subtree has N solutions has at most ⌈√(N + 1)⌉ children. */
const WIDENING = 0.5;

/**
 * UCT (Kocsis and Szepesvári 2006) whose values are ranks, so that the metric's unit does not matter:
 * 1. A valid solution is worth the share of the valid solutions that are no better, a failed or unfinished one 0.
 * 2. From the root go to the child with the largest mean worth of its subtree + c √(ln N / n); N and n count solutions.
 * 3. Stop where the children are fewer than ⌈√(N + 1)⌉, or none of them can be extended.
 * 4. There ask for a child: a draft at the root, an improvement of a valid solution, a repair of a failed one.
 * 5. A failed solution after `debugDepth` repairs in a row, and one that fits in no prompt, get no child.
 */
const uct: Rule = (tree, { debugDepth, exploration }) => {
  const worth = ranksOf(tree);
  const canGrow = (node: SolutionNode) => tree.canImprove(node) || tree.canDebug(node, debugDepth);
  const parts = new Map<string, { solutions: number; sum: number; isOpen: boolean }>();
  const measure = (node: SolutionNode): { solutions: number; sum: number; isOpen: boolean } => {
    const below = tree.childrenOf(node.id).map(measure);
    const part = {
      solutions: 1 + below.reduce((sum, each) => sum + each.solutions, 0),
      sum: worth(node) + below.reduce((sum, each) => sum + each.sum, 0),
      isOpen: canGrow(node) || below.some(({ isOpen }) => isOpen),
    };
    parts.set(node.id, part);
    return part;
  };
  const all = tree.childrenOf(undefined).map(measure);
  let at: SolutionNode | undefined;
  let solutions = all.reduce((sum, each) => sum + each.solutions, 0);
  for (;;) {
    const children = tree.childrenOf(at?.id);
    const open = children.filter(({ id }) => parts.get(id)!.isOpen);
    const widens = (at === undefined || canGrow(at)) && children.length < Math.ceil((solutions + 1) ** WIDENING);
    if (open.length === 0 || widens) break;
    const total = solutions;
    const bound = ({ id }: SolutionNode) => {
      const { solutions: n, sum } = parts.get(id)!;
      return sum / n + exploration * Math.sqrt(Math.log(total) / n);
    };
    at = open.reduce((best, child) => (bound(child) > bound(best) ? child : best));
    solutions = parts.get(at.id)!.solutions;
  }
  if (at === undefined) return DRAFT;
  return at.state === "valid" ? improve(at) : debug(at);
};

/** Returns each node's worth: the share of the valid solutions that are no better; 0 if it is not valid. */
function ranksOf(tree: Tree): (node: SolutionNode) => number {
  const sign = tree.direction === "Higher" ? 1 : -1;
  const scores = tree.nodes
    .flatMap(({ state, score }) => (state === "valid" ? [sign * score!] : []))
    .sort((a, b) => a - b);
  const noBetter = new Map(scores.map((score, index) => [score, index + 1]));
  return ({ state, score }) => (state === "valid" ? noBetter.get(sign * score!)! / scores.length : 0);
}

const RULES: Record<Search, Rule> = { "best-of-n": () => DRAFT, greedy, tree: uct };

/** Returns what to ask for next. */
export const choose = (tree: Tree, rules: SearchRules, next: () => number): Choice =>
  RULES[rules.search](tree, rules, next);
