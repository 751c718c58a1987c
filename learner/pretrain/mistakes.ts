import type { Draw } from "./draw.ts";
import type { TaskShape } from "./shapes.ts";

/** Returns the lines of a program changed, or undefined where the mistake has no place to happen. */
type Apply = (lines: readonly string[], shape: TaskShape, draw: Draw) => string[] | undefined;

/** One thing that goes wrong when people write such programs. Most make a program fail; a few make its result worse. */
interface Mistake {
  name: string;
  weight: number;
  apply: Apply;
}

/** A value, or how it follows from the task. */
type OfTask<T> = T | ((shape: TaskShape) => T);

const ofTask = <T extends string | RegExp | readonly string[]>(value: OfTask<T>, shape: TaskShape): T =>
  typeof value === "function" ? value(shape) : value;

/** Replaces one match of `pattern` (with the g flag), wherever it is, with `replacement`, or with one of them. */
function replace(pattern: OfTask<RegExp>, replacement: OfTask<string | readonly string[]>): Apply {
  return (lines, shape, draw) => {
    const [wanted, texts] = [ofTask(pattern, shape), ofTask(replacement, shape)];
    const text = typeof texts === "string" ? texts : draw.pick(texts);
    const places = lines.flatMap((line, index) => [...line.matchAll(wanted)].map((match) => ({ index, match })));
    if (places.length === 0) return undefined;
    const { index, match } = draw.pick(places);
    const line = lines[index];
    const replaced = match[0].replace(new RegExp(wanted.source), text);
    const changed = line.slice(0, match.index) + replaced + line.slice(match.index + match[0].length);
    return changed === line ? undefined : lines.with(index, changed);
  };
}

function remove(pattern: RegExp): Apply {
  return (lines, _shape, draw) => {
    const places = lines.flatMap((line, index) => (pattern.test(line) ? [index] : []));
    return places.length === 0 ? undefined : lines.toSpliced(draw.pick(places), 1);
  };
}

/** Each as likely as the other. */
function either(a: Apply, b: Apply): Apply {
  return (lines, shape, draw) => (draw.chance(0.5) ? a : b)(lines, shape, draw);
}

function oneOf(...all: readonly Apply[]): Apply {
  return (lines, shape, draw) => draw.pick(all)(lines, shape, draw);
}

/** Changes every line that it can. */
function everywhere(change: (line: string, shape: TaskShape) => string): Apply {
  return (lines, shape) => {
    const changed = lines.map((line) => change(line, shape));
    return changed.every((line, index) => line === lines[index]) ? undefined : changed;
  };
}

/** Takes the loop over the categories out, and the loop around it where it has no other line. */
const forgetEncoding: Apply = (lines, shape, draw) => {
  const start = lines.findIndex((line) => /^ *for c in \[/.test(line));
  if (start < 0) {
    const dummies = /pd\.get_dummies\((.*?\]\))\)(\.reindex\(.*\))?$/;
    return everywhere((line) => line.replace(dummies, "$1"))(lines, shape, draw);
  }
  const indent = /^ */.exec(lines[start])![0].length;
  let end = start + 1;
  while (end < lines.length && /^ */.exec(lines[end])![0].length > indent) end += 1;
  const outer = indent > 0 && /^for d in/.test(lines[start - 1]) && !/^ /.test(lines[end]) ? start - 1 : start;
  return lines.toSpliced(outer, end - outer);
};

const misnameSubmission: Apply = (lines, { target }, draw) => {
  const name = draw.pick(["prediction", "target"]);
  return lines.map((line) =>
    line.replace(`test["${target}"] =`, `test["${name}"] =`).replace(`[["id", "${target}"]]`, `[["id", "${name}"]]`),
  );
};

const MODULES = ["models", "ensemble", "linear_model", "tree", "preprocessing", "regression"];

export const mistakes: readonly Mistake[] = [
  {
    name: "target column misnamed",
    weight: 8,
    apply: replace(
      ({ target }) => new RegExp(`train\\["${target}"\\]`, "g"),
      ({ target }) =>
        [target[0].toUpperCase() + target.slice(1), "target", "label", `${target}s`].map((name) => `train["${name}"]`),
    ),
  },
  {
    name: "feature column misnamed",
    weight: 4,
    apply: oneOf(
      replace(/d\["carat"\]/g, 'd["carats"]'),
      replace(/d\["age"\]/g, 'd["Age"]'),
      replace(/train\["text"\]/g, 'train["review"]'),
      replace(/test\["text"\]/g, 'test["sentence"]'),
      replace(/"clarity"/g, '"clarty"'),
      replace(/"health_ins"/g, '"insurance"'),
      replace(/"maritl"/g, '"marital"'),
    ),
  },
  {
    name: "file misnamed",
    weight: 8,
    apply: either(
      replace(/"input\/(train|test)\.csv"/g, ['"$1.csv"', '"data/$1.csv"']),
      replace(/"submission\.csv"/g, ['"submit.csv"', '"output.csv"', '"predictions.csv"']),
    ),
  },
  {
    name: "class imported from the wrong module",
    weight: 9,
    apply: replace(
      /from sklearn\.(ensemble|linear_model|tree|neighbors|svm|preprocessing|pipeline) import/g,
      MODULES.map((name) => `from sklearn.${name} import`),
    ),
  },
  { name: "import forgotten", weight: 9, apply: remove(/^(from|import) /) },
  {
    name: "class misnamed",
    weight: 5,
    apply: replace(/(Forest|Tree|Boosting|Neighbors|Trees)Regressor\(/g, ["$1Regression(", "$1Classifier("]),
  },
  {
    name: "argument misnamed",
    weight: 8,
    apply: either(
      replace(/(n_estimators|max_iter|n_neighbors)=/g, ["n_trees=", "iterations=", "k=", "n="]),
      replace(/(max_depth|alpha|min_df|learning_rate|ngram_range)=/g, ["depth=", "lambda_=", "rate=", "ngrams="]),
    ),
  },
  { name: "categories not encoded", weight: 8, apply: forgetEncoding },
  {
    name: "test set has no target to drop",
    weight: 5,
    apply: replace(/test\.drop\(columns=\["id"\]\)/g, ({ target }) => `test.drop(columns=["id", "${target}"])`),
  },
  {
    name: "target left in the features",
    weight: 4,
    apply: replace(/train\.drop\(columns=\["id", "\w+"\]\)/g, 'train.drop(columns=["id"])'),
  },
  {
    name: "id kept as a feature",
    weight: 5,
    apply: everywhere((line, { target }) =>
      line
        .replace(`train.drop(columns=["id", "${target}"])`, `train.drop(columns=["${target}"])`)
        .replace('test.drop(columns=["id"])', "test"),
    ),
  },
  { name: "training rows predicted", weight: 5, apply: replace(/model\.predict\(X_test\)/g, "model.predict(X)") },
  { name: "raw frame predicted", weight: 3, apply: replace(/model\.predict\(X_test\)/g, "model.predict(test)") },
  {
    name: "submission without id",
    weight: 5,
    apply: replace(/\[\["id", "\w+"\]\]/g, ({ target }) => [`[["${target}"]]`, `["${target}"]`]),
  },
  { name: "submission column misnamed", weight: 5, apply: misnameSubmission },
  { name: "parenthesis missing", weight: 8, apply: replace(/\)$/g, "") },
  { name: "labels forgotten", weight: 4, apply: replace(/model\.fit\(X, y\)/g, "model.fit(X)") },
  { name: "model not fitted", weight: 5, apply: remove(/^model\.fit\(X, y\)/) },
  {
    name: "vectorizer fitted again",
    weight: 14,
    apply: replace(/vectorizer\.transform\(/g, "vectorizer.fit_transform("),
  },
  { name: "frame instead of text", weight: 8, apply: replace(/transform\((train|test)\["\w+"\]\)/g, "transform($1)") },
  { name: "logarithm not undone", weight: 8, apply: replace(/np\.exp\((model\.predict\(X_test\))\)/g, "$1") },
  {
    name: "variable misnamed",
    weight: 6,
    apply: either(
      replace(/^model\.fit\(X, y\)/g, ["model.fit(X_train, y)", "model.fit(X, y_train)"]),
      replace(/model\.predict\(X_test\)/g, ["clf.predict(X_test)", "model.predict(X_tests)", "model.predict(T)"]),
    ),
  },
];

/** Makes one mistake that has a place in the program; each mistake as often as its weight says. */
export function makeMistake(lines: readonly string[], shape: TaskShape, draw: Draw): { name: string; lines: string[] } {
  for (;;) {
    const mistake = draw.weighted(...mistakes.map((item) => [item.weight, item] as const));
    const changed = mistake.apply(lines, shape, draw);
    if (changed !== undefined) return { name: mistake.name, lines: changed };
  }
}
