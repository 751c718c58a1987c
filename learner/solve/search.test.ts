import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { SEARCH_DEFAULTS, SEARCHES, type Search, type SearchRules } from "../../proto/solve.ts";
import { uniforms } from "../engine/index.ts";
import { choose } from "./search.ts";
import { type Choice, type NodeState, type SolutionNode, Tree } from "./tree.ts";

const rulesOf = (search: Search, change: Partial<SearchRules> = {}): SearchRules => ({
  search,
  ...SEARCH_DEFAULTS,
  ...change,
});

/** Uniform numbers in a given order; taking one too many fails. */
function scripted(...numbers: number[]): () => number {
  return () => {
    const next = numbers.shift();
    assert.notEqual(next, undefined, "one number more is drawn than AIDE draws");
    return next!;
  };
}

/** Adds a solution that was chosen, with its result: a score, `failed`, or `pending`. */
function grow(
  tree: Tree,
  id: string,
  { operator, parent }: Choice,
  result: number | "failed" | "pending",
): SolutionNode {
  const depth = operator === "debug" ? tree.get(parent!)!.depth + 1 : 0;
  const state: NodeState = typeof result === "number" ? "valid" : result;
  const score = typeof result === "number" ? result : undefined;
  const node: SolutionNode = { id, parent, operator, depth, state, score, hasProgram: result !== "pending" };
  tree.put(node);
  return node;
}

test("greedy chooses in AIDE's order: drafts, a failed leaf by chance, else the best", () => {
  const tree = new Tree("Lower");
  const rules = rulesOf("greedy", { drafts: 3, debugProbability: 0.5, debugDepth: 2 });
  const steps: [draws: number[], choice: string, id: string, result: number | "failed"][] = [
    [[], "draft", "a", "failed"],
    [[], "draft", "b", 5],
    [[], "draft", "c", "failed"],
    // below 0.5: the second of the leaves a and c is debugged
    [[0.49, 0.5], "debug c", "d", "failed"],
    // 0.5 is no debugging: b is the best
    [[0.5], "improve b", "e", 4],
    [[0.9], "improve e", "f", 6],
    // leaves that failed: a and d, because c has a child
    [[0.1, 0.99], "debug d", "g", "failed"],
    // g was debugged twice in a row: a alone is left
    [[0.1, 0.99], "debug a", "h", 3],
    // no leaf: the chance is drawn, and the best improved
    [[0.1], "improve h", "i", "failed"],
    [[0.1, 0], "debug i", "j", 3],
    // of equal scores the first
    [[0.8], "improve h", "k", 2],
    [[0.8], "improve k", "l", 9],
  ];
  for (const [draws, expected, id, result] of steps) {
    const choice = choose(tree, rules, scripted(...draws));
    assert.equal([choice.operator, choice.parent].filter(Boolean).join(" "), expected, `before ${id}`);
    grow(tree, id, choice, result);
  }
  assert.equal(tree.get("g")!.depth, 2);
});

test("greedy drafts on while nothing is valid and no failed leaf is drawn", () => {
  const tree = new Tree("Higher");
  const rules = rulesOf("greedy", { drafts: 1, debugDepth: 0 });
  grow(tree, "a", { operator: "draft" }, "failed");
  assert.deepEqual(choose(tree, rules, scripted(0)), { operator: "draft" });
});

test("greedy does not mend what is being mended, nor a response without a program", () => {
  const tree = new Tree("Higher");
  const rules = rulesOf("greedy", { drafts: 1, debugProbability: 1 });
  const draft = grow(tree, "a", { operator: "draft" }, "failed");
  grow(tree, "b", { operator: "debug", parent: "a" }, "pending");
  assert.deepEqual(choose(tree, rules, scripted(0)), { operator: "draft" });
  tree.put({ ...tree.get("b")!, state: "lost" });
  assert.deepEqual(choose(tree, rules, scripted(0, 0)), { operator: "debug", parent: "a" });
  tree.put({ ...draft, hasProgram: false });
  assert.deepEqual(choose(tree, rules, scripted(0)), { operator: "draft" });
});

test("best-of-n drafts alone", () => {
  const tree = new Tree("Higher");
  grow(tree, "a", { operator: "draft" }, 1);
  grow(tree, "b", { operator: "draft" }, "failed");
  assert.deepEqual(choose(tree, rulesOf("best-of-n"), scripted()), { operator: "draft" });
});

test("tree widens with the root of the solutions, and goes where the mean rank and the bound are largest", () => {
  const tree = new Tree("Lower");
  const rules = rulesOf("tree", { exploration: 0 });
  const next = (id: string, result: number | "failed") => {
    const choice = choose(tree, rules, scripted());
    grow(tree, id, choice, result);
    return [choice.operator, choice.parent].filter(Boolean).join(" ");
  };
  assert.equal(next("a", 10), "draft");
  assert.equal(next("b", 20), "draft"); // ⌈√2⌉ = 2 children at the root
  assert.equal(next("c", 30), "improve a"); // ⌈√3⌉ = 2: the root is full; a is the better
  // a and c are worth 1 and 1/3, b 2/3: equal means, and the first is taken; a may have ⌈√3⌉ = 2 children
  assert.equal(next("d", 5), "improve a");
  assert.equal(next("e", 40), "draft"); // ⌈√5⌉ = 3
  // a, c and d are worth 4/5, 2/5 and 1 of five; a has its two children; d is worth more than c
  assert.equal(next("f", "failed"), "improve d");
});

test("tree with a large exploration goes to the subtree with fewer solutions", () => {
  const tree = new Tree("Higher");
  for (const [id, parent, score] of [
    ["a", undefined, 1],
    ["b", undefined, 0],
    ["c", "a", 1],
    ["d", "a", 1],
    ["e", undefined, 0.5],
  ] as const)
    grow(tree, id, parent === undefined ? { operator: "draft" } : { operator: "improve", parent }, score);
  assert.deepEqual(choose(tree, rulesOf("tree", { exploration: 0 }), scripted()), { operator: "improve", parent: "c" });
  assert.deepEqual(choose(tree, rulesOf("tree", { exploration: 100 }), scripted()), {
    operator: "improve",
    parent: "e",
  });
});

/** Plays a search of random results; `pending` solutions end at random. */
function played(search: Search, seed: number, steps: number, slots: number) {
  const next = uniforms(seed, "search");
  const tree = new Tree(seed % 2 === 0 ? "Higher" : "Lower");
  const rules = rulesOf(search);
  const choices: Choice[] = [];
  for (let step = 0; step < steps; step++) {
    const choice = choose(tree, rules, next);
    choices.push(choice);
    grow(tree, `s${step}`, choice, "pending");
    const open = tree.nodes.filter(({ state }) => state === "pending");
    if (open.length < slots) continue;
    const node = open[Math.floor(next() * open.length)]!;
    const kind = next();
    const state: NodeState = kind < 0.5 ? "valid" : kind < 0.95 ? "failed" : "lost";
    const score = state === "valid" ? Math.round(next() * 8) / 8 : undefined;
    tree.put({ ...node, state, score, hasProgram: next() < 0.9 });
    if (next() < 0.05) tree.close(node.id, state === "valid" ? "improve" : "debug");
  }
  return { tree, rules, choices };
}

for (const search of SEARCHES)
  test(`${search}: whatever the results are, each choice can be asked for`, () => {
    const cases = fc.record({
      seed: fc.nat(1e6),
      steps: fc.integer({ min: 1, max: 120 }),
      slots: fc.integer({ min: 1, max: 9 }),
    });
    fc.assert(
      fc.property(cases, ({ seed, steps, slots }) => {
        const { tree, rules, choices } = played(search, seed, steps, slots);
        for (const [step, { operator, parent }] of choices.entries()) {
          const shown = parent === undefined ? undefined : tree.get(parent)!;
          if (operator === "draft") assert.equal(parent, undefined);
          if (operator === "improve") assert.equal(shown!.state, "valid");
          if (operator === "debug") {
            assert.ok(shown!.state === "failed" && shown!.hasProgram, `s${step} mends ${parent}`);
            assert.ok(tree.get(`s${step}`)!.depth <= rules.debugDepth);
          }
        }
        assert.deepEqual(
          played(search, seed, steps, slots).choices,
          choices,
          "the same seed and results, other choices",
        );
      }),
      { numRuns: 60 },
    );
  });

test("a metric's unit changes no choice of tree, because values are ranks", () => {
  const small = new Tree("Lower");
  const large = new Tree("Lower");
  const next = uniforms(1, "ranks");
  for (let step = 0; step < 60; step++) {
    const choice = choose(small, rulesOf("tree"), next);
    assert.deepEqual(choose(large, rulesOf("tree"), next), choice);
    const score = next() < 0.7 ? next() : ("failed" as const);
    grow(small, `s${step}`, choice, score);
    grow(large, `s${step}`, choice, score === "failed" ? score : Math.exp(20 * score));
  }
});
