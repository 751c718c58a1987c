/** A case for each gradient rule of this folder, for `checkGradient`. */
import { draw, type GradientCase } from "../graph/differences.fixture.ts";
import type { Graph, Value } from "../graph/graph.ts";
import { tensor, tensorOf } from "../graph/tensor.ts";
import { frozenLinear } from "./frozen.ts";
import { type OutputLayer, type TokenLogProbs, tokenLogProbs } from "./token-log-probs.ts";

const SHAPES = [
  [3, 4],
  [5, 4],
];
const WHOLE = 5;

function run(h: Value, w: OutputLayer, g: Graph, chunk: number): TokenLogProbs {
  return tokenLogProbs(h, w, g.initializer("targets", tensorOf("int32", [4, 0, 2])), g.constant(1.3), { chunk });
}

const frozen = (g: Graph, name: string, shape: number[], seed: number) =>
  g.initializer(name, tensor(draw(shape[0] * (shape[1] ?? 1), [-1, 1], seed), shape));

/** One value whose gradient is wanted too, or frozen values of 2 and 3 rows. */
const LAYERS: Record<string, (w: Value | undefined, g: Graph) => OutputLayer> = {
  "the whole vocabulary": (w) => w!,
  "a vocabulary in chunks of 2": (w) => w!,
  "frozen chunks": (_, g) =>
    [2, 3].map((count) => {
      const weight = frozen(g, `rows${count}`, [count, 4], count);
      return { forward: weight, backward: weight };
    }),
};

export const CASES: GradientCase[] = [
  ...Object.entries(LAYERS).flatMap(([name, layer]) => {
    const shapes = name === "frozen chunks" ? SHAPES.slice(0, 1) : SHAPES;
    const chunk = name === "the whole vocabulary" ? WHOLE : 2;
    const results = ([h, w]: Value[], g: Graph) => run(h, layer(w, g), g, chunk);
    return [
      { name: `token log-probs, ${name}`, shapes, f: (inputs, g) => results(inputs, g).logProbs },
      { name: `entropies, ${name}`, shapes, range: [-1.5, 1.5], f: (inputs, g) => results(inputs, g).entropies },
      { name: `both, ${name}`, shapes, f: (inputs, g) => Object.values(results(inputs, g)) as Value[] },
    ] satisfies GradientCase[];
  }),
  {
    name: "frozenLinear with bias",
    shapes: [[3, 2]],
    f: ([x], g) => {
      const weight = frozen(g, "w", [4, 2], 3);
      return frozenLinear(x, weight, weight, frozen(g, "b", [4], 4));
    },
  },
  {
    name: "frozenLinear, added to a value of each row",
    shapes: [
      [3, 2],
      [3, 4],
    ],
    f: ([x, total], g) => {
      const weight = frozen(g, "w", [4, 2], 3);
      return frozenLinear(x!, weight, weight, total);
    },
  },
];
