import type { Draw } from "./draw.ts";

/** A regressor as a line of Python, with the imports that it needs and the words that a plan uses for it. */
export interface Estimator {
  phrase: string;
  code: string;
  imports: readonly string[];
}

/** Draws one estimator of a family. */
export type Family = (draw: Draw) => Estimator;

const pipelineImport = "from sklearn.pipeline import make_pipeline";
const scalerImport = "from sklearn.preprocessing import StandardScaler";

function estimator(phrase: string, code: string, ...imports: string[]): Estimator {
  return { phrase, code, imports };
}

/** `Class(first=1, second=2)` without the arguments that are undefined, which stand for the library's default. */
function call(name: string, values: Record<string, string | number | undefined>): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  return `${name}(${given.map(([key, value]) => `${key}=${value}`).join(", ")})`;
}

function seed(draw: Draw): number | undefined {
  return draw.chance(0.5) ? draw.integer(0, 9) : undefined;
}

function scaled(inner: Estimator): Estimator {
  return {
    phrase: `scaled ${inner.phrase}`,
    code: `make_pipeline(StandardScaler(), ${inner.code})`,
    imports: [pipelineImport, scalerImport, ...inner.imports],
  };
}

const alphas = [0.01, 0.03, 0.1, 0.3, 0.5, 1, 2, 3, 5, 10, 30, 100];
const rates = [0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3];

const baseline: Family = (draw) =>
  estimator(
    "a constant",
    call("DummyRegressor", { strategy: draw.pick(['"mean"', '"median"']) }),
    "from sklearn.dummy import DummyRegressor",
  );

const linear: Family = () =>
  estimator("a linear regression", "LinearRegression()", "from sklearn.linear_model import LinearRegression");

const ridge: Family = (draw) =>
  estimator(
    "a ridge regression",
    call("Ridge", { alpha: draw.pick(alphas) }),
    "from sklearn.linear_model import Ridge",
  );

const lasso: Family = (draw) => {
  const name = draw.pick(["Lasso", "ElasticNet"]);
  const code = call(name, { alpha: draw.pick([0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1]) });
  return estimator("a sparse linear model", code, `from sklearn.linear_model import ${name}`);
};

const polynomial: Family = (draw) => {
  const inner = draw.chance(0.5) ? linear(draw) : ridge(draw);
  return {
    phrase: "a polynomial regression",
    code: `make_pipeline(StandardScaler(), PolynomialFeatures(${draw.weighted([
      [5, 2],
      [1, 3],
    ])}), ${inner.code})`,
    imports: [pipelineImport, scalerImport, "from sklearn.preprocessing import PolynomialFeatures", ...inner.imports],
  };
};

const neighbors: Family = (draw) => {
  const code = call("KNeighborsRegressor", {
    n_neighbors: draw.pick([1, 2, 3, 4, 5, 7, 8, 10, 12, 15, 20, 30]),
    weights: draw.chance(0.3) ? '"distance"' : undefined,
  });
  const plain = estimator("nearest neighbors", code, "from sklearn.neighbors import KNeighborsRegressor");
  return draw.chance(0.4) ? scaled(plain) : plain;
};

const tree: Family = (draw) => {
  const depth = draw.chance(0.6) ? draw.pick([3, 4, 5, 6, 8, 10, 12, 15]) : undefined;
  const leaf = depth === undefined || draw.chance(0.2) ? draw.pick([2, 3, 5, 8, 10, 20, 30, 50]) : undefined;
  return estimator(
    "a decision tree",
    call("DecisionTreeRegressor", { max_depth: depth, min_samples_leaf: leaf, random_state: seed(draw) }),
    "from sklearn.tree import DecisionTreeRegressor",
  );
};

/** The number of trees, mostly small. */
function trees(draw: Draw): number {
  return draw.weighted([
    [10, 5],
    [18, 10],
    [8, 15],
    [16, 20],
    [12, 30],
    [10, 50],
    [4, 80],
    [6, 100],
    [2, 150],
  ] as const);
}

function averageOfTrees(name: string, phrase: string): Family {
  return (draw) =>
    estimator(
      phrase,
      call(name, {
        n_estimators: trees(draw),
        max_depth: draw.chance(0.25) ? draw.pick([4, 6, 8, 10, 12, 15]) : undefined,
        min_samples_leaf: draw.chance(0.3) ? draw.pick([2, 3, 5, 8, 10, 20]) : undefined,
        max_features: draw.chance(0.25) ? draw.pick([0.3, 0.5, 0.7, 0.8]) : undefined,
        random_state: seed(draw),
      }),
      `from sklearn.ensemble import ${name}`,
    );
}

const forest = averageOfTrees("RandomForestRegressor", "a random forest");
const extraTrees = averageOfTrees("ExtraTreesRegressor", "extra trees");

const bagging: Family = (draw) =>
  estimator(
    "bagged trees",
    call("BaggingRegressor", { n_estimators: trees(draw), random_state: seed(draw) }),
    "from sklearn.ensemble import BaggingRegressor",
  );

const boosting: Family = (draw) =>
  estimator(
    "gradient boosting",
    call("GradientBoostingRegressor", {
      n_estimators: draw.weighted([
        [4, undefined],
        [3, 20],
        [4, 50],
        [2, 80],
        [2, 150],
        [1, 200],
        [1, 300],
      ]),
      learning_rate: draw.chance(0.5) ? draw.pick(rates) : undefined,
      max_depth: draw.chance(0.4) ? draw.pick([2, 3, 4, 5, 6]) : undefined,
      subsample: draw.chance(0.15) ? draw.pick([0.5, 0.7, 0.8]) : undefined,
    }),
    "from sklearn.ensemble import GradientBoostingRegressor",
  );

const histogramBoosting: Family = (draw) =>
  estimator(
    "histogram boosting",
    call("HistGradientBoostingRegressor", {
      loss: draw.chance(0.15) ? '"absolute_error"' : undefined,
      max_iter: draw.weighted([
        [4, undefined],
        [3, 30],
        [4, 50],
        [2, 80],
        [2, 150],
        [2, 200],
        [1, 300],
        [1, 500],
      ]),
      learning_rate: draw.chance(0.5) ? draw.pick(rates) : undefined,
      max_leaf_nodes: draw.chance(0.2) ? draw.pick([8, 15, 20, 40, 60]) : undefined,
    }),
    "from sklearn.ensemble import HistGradientBoostingRegressor",
  );

const network: Family = (draw) => {
  const layers = draw.weighted([
    [4, "(32,)"],
    [3, "(50,)"],
    [3, "(64,)"],
    [2, "(100,)"],
    [2, "(32, 32)"],
    [1, "(64, 32)"],
  ]);
  const inner = estimator(
    "neural network",
    call("MLPRegressor", {
      hidden_layer_sizes: layers,
      max_iter: draw.pick([10, 20, 30, 50, 100]),
      learning_rate_init: draw.chance(0.5) ? draw.pick([0.003, 0.01, 0.03]) : undefined,
    }),
    "from sklearn.neural_network import MLPRegressor",
  );
  if (draw.chance(0.7)) return { ...scaled(inner), phrase: "a scaled neural network" };
  return { ...inner, phrase: "a neural network" };
};

const supportVectors: Family = (draw) =>
  scaled(
    estimator(
      "support vector machine",
      call("SVR", { C: draw.pick([1, 3, 10, 30, 100]), kernel: draw.chance(0.3) ? '"linear"' : undefined }),
      "from sklearn.svm import SVR",
    ),
  );

const linearSupportVectors: Family = (draw) =>
  estimator(
    "a linear support vector machine",
    call("LinearSVR", { C: draw.pick([0.03, 0.1, 0.2, 0.3, 0.5, 1, 2, 5]) }),
    "from sklearn.svm import LinearSVR",
  );

const stochasticGradient: Family = (draw) =>
  estimator(
    "stochastic gradient descent",
    call("SGDRegressor", {
      alpha: draw.pick(["1e-6", "1e-5", "3e-5", "1e-4", "1e-3"]),
      max_iter: draw.pick([20, 50, 100, undefined]),
      random_state: seed(draw),
    }),
    "from sklearn.linear_model import SGDRegressor",
  );

/** Two models that are averaged. */
function averageOf(members: Choices): Family {
  return (draw) => {
    const [a, b] = [draw.weighted(members)(draw), draw.weighted(members)(draw)];
    return {
      phrase: `the average of ${a.phrase} and ${b.phrase}`,
      code: `VotingRegressor([("a", ${a.code}), ("b", ${b.code})])`,
      imports: ["from sklearn.ensemble import VotingRegressor", ...a.imports, ...b.imports],
    };
  };
}

/** Two models under a third that is fitted on their cross-validated predictions: five times the fits. */
function stackOf(members: Choices): Family {
  return (draw) => {
    const [a, b] = [draw.weighted(members)(draw), draw.weighted(members)(draw)];
    return {
      phrase: `a stack of ${a.phrase} and ${b.phrase}`,
      code: `StackingRegressor([("a", ${a.code}), ("b", ${b.code})], cv=${draw.pick([2, 3, 5])})`,
      imports: ["from sklearn.ensemble import StackingRegressor", ...a.imports, ...b.imports],
    };
  };
}

export type Choices = readonly (readonly [weight: number, family: Family])[];

const tabularMembers: Choices = [
  [4, linear],
  [4, ridge],
  [3, tree],
  [4, forest],
  [3, extraTrees],
  [4, histogramBoosting],
  [2, boosting],
];
const sparseMembers: Choices = [
  [6, ridge],
  [4, linearSupportVectors],
  [2, stochasticGradient],
  [1, neighbors],
];

/** How often each family is written for a table: cheap and middling ones often, strong ones less, so that there is a ladder to climb. */
export const tabularFamilies: Choices = [
  [5, baseline],
  [17, linear],
  [12, ridge],
  [4, lasso],
  [4, polynomial],
  [11, neighbors],
  [16, tree],
  [8, forest],
  [4, extraTrees],
  [2, bagging],
  [5, boosting],
  [6, histogramBoosting],
  [3, network],
  [1, supportVectors],
  [4, averageOf(tabularMembers)],
  [1, stackOf(tabularMembers)],
];

/** The same for a sparse matrix of word counts, on which tree models are slow and some do not work at all. */
export const sparseFamilies: Choices = [
  [3, baseline],
  [7, linear],
  [26, ridge],
  [4, lasso],
  [9, neighbors],
  [5, tree],
  [1, forest],
  [8, stochasticGradient],
  [12, linearSupportVectors],
  [1, supportVectors],
  [1, histogramBoosting],
  [4, averageOf(sparseMembers)],
  [1, stackOf(sparseMembers)],
];
