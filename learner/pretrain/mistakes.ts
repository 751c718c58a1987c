import type { Draw } from "./draw.ts";
import type { TaskShape } from "./shapes.ts";

/** Returns the program's lines with the mistake, or undefined if the mistake does not apply to them. */
type Apply = (lines: readonly string[], draw: Draw) => string[] | undefined;

/** A typical mistake in such programs. Most make a program fail; a few make its result worse. */
type Mistake = readonly [weight: number, name: string, apply: Apply];

/** Replaces a random match of `pattern` with `replacement`, or with one of several. */
function replace(pattern: RegExp, replacement: string | readonly string[]): Apply {
  return (lines, draw) => {
    const text = typeof replacement === "string" ? replacement : draw.pick(replacement);
    const places = lines.flatMap((line, index) => [...line.matchAll(pattern)].map((match) => ({ index, match })));
    if (places.length === 0) return undefined;
    const { index, match } = draw.pick(places);
    const line = lines[index];
    const replaced = match[0].replace(new RegExp(pattern.source), text);
    const changed = line.slice(0, match.index) + replaced + line.slice(match.index + match[0].length);
    return changed === line ? undefined : lines.with(index, changed);
  };
}

function remove(pattern: RegExp): Apply {
  return (lines, draw) => {
    const places = lines.flatMap((line, index) => (pattern.test(line) ? [index] : []));
    return places.length === 0 ? undefined : lines.toSpliced(draw.pick(places), 1);
  };
}

/** Chooses among equally likely mistakes. */
function oneOf(...all: readonly Apply[]): Apply {
  return (lines, draw) => draw.pick(all)(lines, draw);
}

function everywhere(change: (line: string) => string): Apply {
  return (lines) => {
    const changed = lines.map(change);
    return changed.every((line, index) => line === lines[index]) ? undefined : changed;
  };
}

const forgetDummies = everywhere((line) => line.replace(/pd\.get_dummies\((.*?\]\))\)(\.reindex\(.*\))?$/, "$1"));

/** Removes the loop over the categories, and the loop around it if it has no other line. */
const forgetEncoding: Apply = (lines, draw) => {
  const start = lines.findIndex((line) => /^ *for c in \[/.test(line));
  if (start < 0) return forgetDummies(lines, draw);
  const indent = /^ */.exec(lines[start])![0].length;
  let end = start + 1;
  while (end < lines.length && /^ */.exec(lines[end])![0].length > indent) end += 1;
  const outer = indent > 0 && /^for d in/.test(lines[start - 1]) && !/^ /.test(lines[end]) ? start - 1 : start;
  return lines.toSpliced(outer, end - outer);
};

const misnameSubmission =
  (target: string): Apply =>
  (lines, draw) => {
    const name = draw.pick(["prediction", "target"]);
    return lines.map((line) =>
      line.replace(`test["${target}"] =`, `test["${name}"] =`).replace(`[["id", "${target}"]]`, `[["id", "${name}"]]`),
    );
  };

const MODULES = ["models", "ensemble", "linear_model", "tree", "preprocessing", "regression"];

export function mistakesOf({ target }: TaskShape): readonly Mistake[] {
  const wrongTarget = [target[0].toUpperCase() + target.slice(1), "target", "label", `${target}s`];
  const wrongColumn = oneOf(
    replace(/d\["carat"\]/g, 'd["carats"]'),
    replace(/d\["age"\]/g, 'd["Age"]'),
    replace(/train\["text"\]/g, 'train["review"]'),
    replace(/test\["text"\]/g, 'test["sentence"]'),
    replace(/"clarity"/g, '"clarty"'),
    replace(/"health_ins"/g, '"insurance"'),
    replace(/"maritl"/g, '"marital"'),
  );
  const wrongFile = oneOf(
    replace(/"input\/(train|test)\.csv"/g, ['"$1.csv"', '"data/$1.csv"']),
    replace(/"submission\.csv"/g, ['"submit.csv"', '"output.csv"', '"predictions.csv"']),
  );
  const wrongModule = replace(
    /from sklearn\.(ensemble|linear_model|tree|neighbors|svm|preprocessing|pipeline) import/g,
    MODULES.map((name) => `from sklearn.${name} import`),
  );
  const wrongClass = ["$1Regression(", "$1Classifier("];
  const wrongArgument = oneOf(
    replace(/(n_estimators|max_iter|n_neighbors)=/g, ["n_trees=", "iterations=", "k=", "n="]),
    replace(/(max_depth|alpha|min_df|learning_rate|ngram_range)=/g, ["depth=", "lambda_=", "rate=", "ngrams="]),
  );
  const keepId = everywhere((line) =>
    line
      .replace(`train.drop(columns=["id", "${target}"])`, `train.drop(columns=["${target}"])`)
      .replace('test.drop(columns=["id"])', "test"),
  );
  const wrongVariable = oneOf(
    replace(/^model\.fit\(X, y\)/g, ["model.fit(X_train, y)", "model.fit(X, y_train)"]),
    replace(/model\.predict\(X_test\)/g, ["clf.predict(X_test)", "model.predict(X_tests)", "model.predict(T)"]),
  );
  const dropTarget = `test.drop(columns=["id", "${target}"])`;
  return [
    [
      8,
      "target column misnamed",
      replace(
        new RegExp(`train\\["${target}"\\]`, "g"),
        wrongTarget.map((name) => `train["${name}"]`),
      ),
    ],
    [4, "feature column misnamed", wrongColumn],
    [8, "file misnamed", wrongFile],
    [9, "class imported from the wrong module", wrongModule],
    [9, "import forgotten", remove(/^(from|import) /)],
    [5, "class misnamed", replace(/(Forest|Tree|Boosting|Neighbors|Trees)Regressor\(/g, wrongClass)],
    [8, "argument misnamed", wrongArgument],
    [8, "categories not encoded", forgetEncoding],
    [5, "test set has no target to drop", replace(/test\.drop\(columns=\["id"\]\)/g, dropTarget)],
    [
      4,
      "target left in the features",
      replace(/train\.drop\(columns=\["id", "\w+"\]\)/g, 'train.drop(columns=["id"])'),
    ],
    [5, "id kept as a feature", keepId],
    [5, "training rows predicted", replace(/model\.predict\(X_test\)/g, "model.predict(X)")],
    [3, "raw frame predicted", replace(/model\.predict\(X_test\)/g, "model.predict(test)")],
    [5, "submission without id", replace(/\[\["id", "\w+"\]\]/g, [`[["${target}"]]`, `["${target}"]`])],
    [5, "submission column misnamed", misnameSubmission(target)],
    [8, "parenthesis missing", replace(/\)$/g, "")],
    [4, "labels forgotten", replace(/model\.fit\(X, y\)/g, "model.fit(X)")],
    [5, "model not fitted", remove(/^model\.fit\(X, y\)/)],
    [14, "vectorizer fitted again", replace(/vectorizer\.transform\(/g, "vectorizer.fit_transform(")],
    [8, "frame instead of text", replace(/transform\((train|test)\["\w+"\]\)/g, "transform($1)")],
    [8, "logarithm not undone", replace(/np\.exp\((model\.predict\(X_test\))\)/g, "$1")],
    [6, "variable misnamed", wrongVariable],
  ];
}

/** Makes one mistake that applies to the program, chosen by the mistakes' weights. */
export function makeMistake(lines: readonly string[], shape: TaskShape, draw: Draw): { name: string; lines: string[] } {
  const choices = mistakesOf(shape).map((mistake) => [mistake[0], mistake] as const);
  for (;;) {
    const [, name, apply] = draw.weighted(...choices);
    const changed = apply(lines, draw);
    if (changed !== undefined) return { name, lines: changed };
  }
}
