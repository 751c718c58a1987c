import type { Draw } from "./draw.ts";

/** A regressor as a line of Python, with its imports and a plan's words for it. */
export interface Estimator {
  phrase: string;
  code: string;
  imports: readonly string[];
}

export type Family = (draw: Draw) => Estimator;

/** Arguments of a call in Python; undefined means the library's default. */
export type Arguments = Record<string, string | number | undefined>;

/** Returns `Class(first=1, second=2)`. */
export function call(name: string, values: Arguments): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  return `${name}(${given.map(([key, value]) => `${key}=${value}`).join(", ")})`;
}

/** @param path below sklearn, e.g. `linear_model.Ridge` */
function estimator(phrase: string, path: string, values: Arguments = {}): Estimator {
  const [module, name] = path.split(".");
  return { phrase, code: call(name, values), imports: [`from sklearn.${module} import ${name}`] };
}

/** Returns a pipeline of `steps`, expressions of classes of sklearn.preprocessing, and an estimator. */
function after(steps: readonly string[], inner: Estimator, phrase: string): Estimator {
  const classes = steps.map((step) => `from sklearn.preprocessing import ${step.slice(0, step.indexOf("("))}`);
  return {
    phrase,
    code: `make_pipeline(${[...steps, inner.code].join(", ")})`,
    imports: ["from sklearn.pipeline import make_pipeline", ...classes, ...inner.imports],
  };
}

const scaled = (inner: Estimator) => after(["StandardScaler()"], inner, `scaled ${inner.phrase}`);

const seed = (draw: Draw) => (draw.chance(0.5) ? draw.pick([...Array(10).keys()]) : undefined);

const rates = [0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3];

const baseline: Family = (draw) =>
  estimator("a constant", "dummy.DummyRegressor", { strategy: draw.pick(['"mean"', '"median"']) });

const linear: Family = () => estimator("a linear regression", "linear_model.LinearRegression");

const ridge: Family = (draw) => {
  const alpha = draw.pick([0.01, 0.03, 0.1, 0.3, 0.5, 1, 2, 3, 5, 10, 30, 100]);
  return estimator("a ridge regression", "linear_model.Ridge", { alpha });
};

const lasso: Family = (draw) =>
  estimator("a sparse linear model", `linear_model.${draw.pick(["Lasso", "ElasticNet"])}`, {
    alpha: draw.pick([0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1]),
  });

const polynomial: Family = (draw) => {
  const inner = draw.chance(0.5) ? linear(draw) : ridge(draw);
  const degree = draw.weighted([5, 2], [1, 3]);
  return after(["StandardScaler()", `PolynomialFeatures(${degree})`], inner, "a polynomial regression");
};

const neighbors: Family = (draw) => {
  const plain = estimator("nearest neighbors", "neighbors.KNeighborsRegressor", {
    n_neighbors: draw.pick([1, 2, 3, 4, 5, 7, 8, 10, 12, 15, 20, 30]),
    weights: draw.chance(0.3) ? '"distance"' : undefined,
  });
  return draw.chance(0.4) ? scaled(plain) : plain;
};

const tree: Family = (draw) => {
  const max_depth = draw.maybe(0.6, [3, 4, 5, 6, 8, 10, 12, 15]);
  const isLimited = max_depth === undefined || draw.chance(0.2);
  const min_samples_leaf = isLimited ? draw.pick([2, 3, 5, 8, 10, 20, 30, 50]) : undefined;
  const values = { max_depth, min_samples_leaf, random_state: seed(draw) };
  return estimator("a decision tree", "tree.DecisionTreeRegressor", values);
};

const trees = (draw: Draw) =>
  draw.weighted([10, 5], [18, 10], [8, 15], [16, 20], [12, 30], [10, 50], [4, 80], [6, 100], [2, 150]);

function averageOfTrees(name: string, phrase: string): Family {
  return (draw) =>
    estimator(phrase, `ensemble.${name}`, {
      n_estimators: trees(draw),
      max_depth: draw.maybe(0.25, [4, 6, 8, 10, 12, 15]),
      min_samples_leaf: draw.maybe(0.3, [2, 3, 5, 8, 10, 20]),
      max_features: draw.maybe(0.25, [0.3, 0.5, 0.7, 0.8]),
      random_state: seed(draw),
    });
}

const forest = averageOfTrees("RandomForestRegressor", "a random forest");
const extraTrees = averageOfTrees("ExtraTreesRegressor", "extra trees");

const bagging: Family = (draw) =>
  estimator("bagged trees", "ensemble.BaggingRegressor", { n_estimators: trees(draw), random_state: seed(draw) });

const boosting: Family = (draw) =>
  estimator("gradient boosting", "ensemble.GradientBoostingRegressor", {
    n_estimators: draw.weighted([4, undefined], [3, 20], [4, 50], [2, 80], [2, 150], [1, 200], [1, 300]),
    learning_rate: draw.maybe(0.5, rates),
    max_depth: draw.maybe(0.4, [2, 3, 4, 5, 6]),
    subsample: draw.maybe(0.15, [0.5, 0.7, 0.8]),
  });

const histogramBoosting: Family = (draw) =>
  estimator("histogram boosting", "ensemble.HistGradientBoostingRegressor", {
    loss: draw.chance(0.15) ? '"absolute_error"' : undefined,
    max_iter: draw.weighted([4, undefined], [3, 30], [4, 50], [2, 80], [2, 150], [2, 200], [1, 300], [1, 500]),
    learning_rate: draw.maybe(0.5, rates),
    max_leaf_nodes: draw.maybe(0.2, [8, 15, 20, 40, 60]),
  });

const network: Family = (draw) => {
  const inner = estimator("a neural network", "neural_network.MLPRegressor", {
    hidden_layer_sizes: `(${draw.weighted([4, "32,"], [3, "50,"], [3, "64,"], [2, "100,"], [2, "32, 32"], [1, "64, 32"])})`,
    max_iter: draw.pick([10, 20, 30, 50, 100]),
    learning_rate_init: draw.maybe(0.5, [0.003, 0.01, 0.03]),
  });
  return draw.chance(0.7) ? { ...scaled(inner), phrase: "a scaled neural network" } : inner;
};

const supportVectors: Family = (draw) => {
  const values = { C: draw.pick([1, 3, 10, 30, 100]), kernel: draw.chance(0.3) ? '"linear"' : undefined };
  return scaled(estimator("support vector machine", "svm.SVR", values));
};

const linearSupportVectors: Family = (draw) =>
  estimator("a linear support vector machine", "svm.LinearSVR", {
    C: draw.pick([0.03, 0.1, 0.2, 0.3, 0.5, 1, 2, 5]),
  });

const stochasticGradient: Family = (draw) =>
  estimator("stochastic gradient descent", "linear_model.SGDRegressor", {
    alpha: draw.pick(["1e-6", "1e-5", "3e-5", "1e-4", "1e-3"]),
    max_iter: draw.pick([20, 50, 100, undefined]),
    random_state: seed(draw),
  });

/** Combines two models in a class of sklearn.ensemble; `ending` draws its last arguments. */
function both(name: string, members: Choices, phrase: string, ending: (draw: Draw) => string): Family {
  return (draw) => {
    const [a, b] = [draw.weighted(...members)(draw), draw.weighted(...members)(draw)];
    return {
      phrase: `${phrase} of ${a.phrase} and ${b.phrase}`,
      code: `${name}([("a", ${a.code}), ("b", ${b.code})]${ending(draw)})`,
      imports: [`from sklearn.ensemble import ${name}`, ...a.imports, ...b.imports],
    };
  };
}

const averageOf = (members: Choices) => both("VotingRegressor", members, "the average", () => "");

/** Fits a third model to the cross-validated predictions of two, which takes five times the fits. */
const stackOf = (members: Choices) =>
  both("StackingRegressor", members, "a stack", (draw) => `, cv=${draw.pick([2, 3, 5])}`);

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

/** How often each family is written for a table: cheap and middling ones often, strong ones less, so that a policy can improve. */
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

/** The same for a sparse matrix of word counts, on which tree models are slow or fail. */
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
