import type { Draw } from "./draw.ts";
import type { TaskShape } from "./shapes.ts";

/**
 * One thing that goes wrong when people write such programs. `apply` changes the lines of a program, or returns
 * undefined where it has no place to happen. Most make the program fail; a few leave it running with a worse result.
 */
interface Mistake {
  name: string;
  weight: number;
  apply(lines: readonly string[], shape: TaskShape, draw: Draw): string[] | undefined;
}

/** Replaces one of the matches of `pattern` (with the g flag), wherever in the program it is. */
function replaceOne(lines: readonly string[], pattern: RegExp, replacement: string, draw: Draw): string[] | undefined {
  const places = lines.flatMap((line, index) => [...line.matchAll(pattern)].map((match) => ({ index, match })));
  if (places.length === 0) return undefined;
  const { index, match } = draw.pick(places);
  const line = lines[index];
  const text = match[0].replace(new RegExp(pattern.source), replacement);
  const changed = line.slice(0, match.index) + text + line.slice(match.index + match[0].length);
  return changed === line ? undefined : lines.with(index, changed);
}

function removeOne(lines: readonly string[], pattern: RegExp, draw: Draw): string[] | undefined {
  const places = lines.flatMap((line, index) => (pattern.test(line) ? [index] : []));
  if (places.length === 0) return undefined;
  return lines.toSpliced(draw.pick(places), 1);
}

export const mistakes: readonly Mistake[] = [
  {
    name: "target column misnamed",
    weight: 8,
    apply: (lines, shape, draw) => {
      const capital = shape.target[0].toUpperCase() + shape.target.slice(1);
      const name = draw.pick([capital, "target", "label", `${shape.target}s`]);
      return replaceOne(lines, new RegExp(`train\\["${shape.target}"\\]`, "g"), `train["${name}"]`, draw);
    },
  },
  {
    name: "feature column misnamed",
    weight: 4,
    apply: (lines, _shape, draw) => {
      const [from, to] = draw.pick([
        ['d\\["carat"\\]', 'd["carats"]'],
        ['d\\["age"\\]', 'd["Age"]'],
        ['train\\["text"\\]', 'train["review"]'],
        ['test\\["text"\\]', 'test["sentence"]'],
        ['"clarity"', '"clarty"'],
        ['"health_ins"', '"insurance"'],
        ['"maritl"', '"marital"'],
      ]);
      return replaceOne(lines, new RegExp(from, "g"), to, draw);
    },
  },
  {
    name: "file misnamed",
    weight: 8,
    apply: (lines, _shape, draw) =>
      draw.chance(0.5)
        ? replaceOne(lines, /"input\/(train|test)\.csv"/g, draw.pick(['"$1.csv"', '"data/$1.csv"']), draw)
        : replaceOne(
            lines,
            /"submission\.csv"/g,
            draw.pick(['"submit.csv"', '"output.csv"', '"predictions.csv"']),
            draw,
          ),
  },
  {
    name: "class imported from the wrong module",
    weight: 9,
    apply: (lines, _shape, draw) =>
      replaceOne(
        lines,
        /from sklearn\.(ensemble|linear_model|tree|neighbors|svm|preprocessing|pipeline) import/g,
        `from sklearn.${draw.pick(["models", "ensemble", "linear_model", "tree", "preprocessing", "regression"])} import`,
        draw,
      ),
  },
  {
    name: "import forgotten",
    weight: 9,
    apply: (lines, _shape, draw) => removeOne(lines, /^(from|import) /, draw),
  },
  {
    name: "class misnamed",
    weight: 5,
    apply: (lines, _shape, draw) =>
      replaceOne(
        lines,
        /(Forest|Tree|Boosting|Neighbors|Trees)Regressor\(/g,
        draw.pick(["$1Regression(", "$1Classifier("]),
        draw,
      ),
  },
  {
    name: "argument misnamed",
    weight: 8,
    apply: (lines, _shape, draw) =>
      draw.chance(0.5)
        ? replaceOne(
            lines,
            /(n_estimators|max_iter|n_neighbors)=/g,
            draw.pick(["n_trees=", "iterations=", "k=", "n="]),
            draw,
          )
        : replaceOne(
            lines,
            /(max_depth|alpha|min_df|learning_rate|ngram_range)=/g,
            draw.pick(["depth=", "lambda_=", "rate=", "ngrams="]),
            draw,
          ),
  },
  {
    name: "categories not encoded",
    weight: 8,
    apply: (lines) => {
      const start = lines.findIndex((line) => /^ *for c in \[/.test(line));
      if (start < 0) {
        const dummies = lines.map((line) => line.replace(/pd\.get_dummies\((.*?\]\))\)(\.reindex\(.*\))?$/, "$1"));
        return dummies.every((line, index) => line === lines[index]) ? undefined : dummies;
      }
      const indent = /^ */.exec(lines[start])![0].length;
      let end = start + 1;
      while (end < lines.length && /^ */.exec(lines[end])![0].length > indent) end += 1;
      const outer = indent > 0 && /^for d in/.test(lines[start - 1]) && !/^ /.test(lines[end]) ? start - 1 : start;
      return lines.toSpliced(outer, end - outer);
    },
  },
  {
    name: "test set has no target to drop",
    weight: 5,
    apply: (lines, shape, draw) =>
      replaceOne(lines, /test\.drop\(columns=\["id"\]\)/g, `test.drop(columns=["id", "${shape.target}"])`, draw),
  },
  {
    name: "target left in the features",
    weight: 4,
    apply: (lines, _shape, draw) =>
      replaceOne(lines, /train\.drop\(columns=\["id", "\w+"\]\)/g, 'train.drop(columns=["id"])', draw),
  },
  {
    name: "id kept as a feature",
    weight: 5,
    apply: (lines, shape) => {
      const kept = lines.map((line) =>
        line
          .replace(`train.drop(columns=["id", "${shape.target}"])`, `train.drop(columns=["${shape.target}"])`)
          .replace('test.drop(columns=["id"])', "test"),
      );
      return kept.every((line, index) => line === lines[index]) ? undefined : kept;
    },
  },
  {
    name: "training rows predicted",
    weight: 5,
    apply: (lines, _shape, draw) => replaceOne(lines, /model\.predict\(X_test\)/g, "model.predict(X)", draw),
  },
  {
    name: "raw frame predicted",
    weight: 3,
    apply: (lines, _shape, draw) => replaceOne(lines, /model\.predict\(X_test\)/g, "model.predict(test)", draw),
  },
  {
    name: "submission without id",
    weight: 5,
    apply: (lines, shape, draw) =>
      replaceOne(lines, /\[\["id", "\w+"\]\]/g, draw.pick([`[["${shape.target}"]]`, `["${shape.target}"]`]), draw),
  },
  {
    name: "submission column misnamed",
    weight: 5,
    apply: (lines, shape, draw) => {
      const name = draw.pick(["prediction", "target"]);
      return lines.map((line) =>
        line
          .replace(`test["${shape.target}"] =`, `test["${name}"] =`)
          .replace(`[["id", "${shape.target}"]]`, `[["id", "${name}"]]`),
      );
    },
  },
  {
    name: "parenthesis missing",
    weight: 8,
    apply: (lines, _shape, draw) => replaceOne(lines, /\)$/g, "", draw),
  },
  {
    name: "labels forgotten",
    weight: 4,
    apply: (lines, _shape, draw) => replaceOne(lines, /model\.fit\(X, y\)/g, "model.fit(X)", draw),
  },
  {
    name: "model not fitted",
    weight: 5,
    apply: (lines, _shape, draw) => removeOne(lines, /^model\.fit\(X, y\)/, draw),
  },
  {
    name: "vectorizer fitted again",
    weight: 14,
    apply: (lines, _shape, draw) => replaceOne(lines, /vectorizer\.transform\(/g, "vectorizer.fit_transform(", draw),
  },
  {
    name: "frame instead of text",
    weight: 8,
    apply: (lines, _shape, draw) => replaceOne(lines, /transform\((train|test)\["\w+"\]\)/g, "transform($1)", draw),
  },
  {
    name: "logarithm not undone",
    weight: 8,
    apply: (lines, _shape, draw) => replaceOne(lines, /np\.exp\((model\.predict\(X_test\))\)/g, "$1", draw),
  },
  {
    name: "variable misnamed",
    weight: 6,
    apply: (lines, _shape, draw) =>
      draw.chance(0.5)
        ? replaceOne(lines, /^model\.fit\(X, y\)/g, draw.pick(["model.fit(X_train, y)", "model.fit(X, y_train)"]), draw)
        : replaceOne(
            lines,
            /model\.predict\(X_test\)/g,
            draw.pick(["clf.predict(X_test)", "model.predict(X_tests)", "model.predict(T)"]),
            draw,
          ),
  },
];

/** Makes one mistake that has a place in the program; each mistake as often as its weight says. */
export function makeMistake(lines: readonly string[], shape: TaskShape, draw: Draw): { name: string; lines: string[] } {
  for (;;) {
    const mistake = draw.weighted(mistakes.map((item) => [item.weight, item] as const));
    const changed = mistake.apply(lines, shape, draw);
    if (changed !== undefined) return { name: mistake.name, lines: changed };
  }
}
