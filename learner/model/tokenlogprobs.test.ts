import { test } from "node:test";
import { checkGradient, type GradientCase } from "../graph/differences.ts";
import type { Graph, Value } from "../graph/graph.ts";
import { tensorOf } from "../graph/tensor.ts";
import { tokenLogProbs } from "./tokenlogprobs.ts";

const run = ([h, w]: Value[], g: Graph) =>
  tokenLogProbs(h, w, g.initializer("targets", tensorOf("int32", [4, 0, 2])), g.constant(1.3));
const SHAPES = [
  [3, 4],
  [5, 4],
];

const CASES: GradientCase[] = [
  { name: "token log-probs", shapes: SHAPES, f: (inputs, g) => run(inputs, g).logProbs },
  { name: "entropies", shapes: SHAPES, range: [-1.5, 1.5], f: (inputs, g) => run(inputs, g).entropies },
  {
    name: "token log-probs and entropies together",
    shapes: SHAPES,
    f: (inputs, g) => Object.values(run(inputs, g)) as Value[],
  },
];

for (const rule of CASES) test(`gradient of ${rule.name}`, () => checkGradient(rule));
