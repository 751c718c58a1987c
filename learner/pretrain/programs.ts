import type { Draw } from "./draw.ts";
import {
  type Arguments,
  type Choices,
  call,
  type Estimator,
  type Family,
  sparseFamilies,
  tabularFamilies,
} from "./estimators.ts";
import type { TaskShape } from "./shapes.ts";

/** The choices that make a program. Two programs differ in at least one; an improved program keeps some. */
export interface Design {
  features: Features;
  family: Family;
  model: Estimator;
  logTarget: boolean;
  report: Report;
}

/** How columns become a matrix. `frame` runs for both frames as `d`; `matrix` makes X and X_test. */
interface Features {
  sentence: string;
  imports: readonly string[];
  frame: readonly string[];
  matrix: readonly string[];
  families: Choices;
}

type Report = "nothing" | "training" | "validation";

const REPORTED = {
  training: ["Print the training loss.", "Look at the training loss."],
  validation: ["Validate on a held-out part.", "Check a validation split."],
};

export function drawDesign(shape: TaskShape, draw: Draw): Design {
  const features = drawFeatures(shape, draw);
  const family = draw.weighted(...features.families);
  return {
    features,
    family,
    model: family(draw),
    logTarget: shape.text === undefined && draw.chance(0.18),
    report: drawReport(draw),
  };
}

/** Returns the design with one choice drawn again, for better or worse. */
export function redrawPart(design: Design, shape: TaskShape, draw: Draw): Design {
  const targets = shape.text === undefined ? 2 : 0;
  const part = draw.weighted([3, "model"], [3, "family"], [3, "features"], [targets, "target"], [1, "report"]);
  if (part === "model") return { ...design, model: design.family(draw) };
  if (part === "target") return { ...design, logTarget: !design.logTarget };
  if (part === "report") return { ...design, report: drawReport(draw) };
  if (part === "family") {
    const family = draw.weighted(...design.features.families);
    return { ...design, family, model: family(draw) };
  }
  const fresh = drawDesign(shape, draw);
  // A model for a sparse matrix may not work for a table.
  return fresh.features.families === design.features.families ? { ...design, features: fresh.features } : fresh;
}

const drawReport = (draw: Draw): Report => draw.weighted([4, "nothing"], [4, "training"], [2, "validation"]);

function drawFeatures(shape: TaskShape, draw: Draw): Features {
  if (shape.text === undefined) return tableFeatures(shape, draw);
  return draw.chance(0.12) ? lengthFeatures(shape, draw) : textFeatures(shape.text, draw);
}

const list = (names: readonly string[]): string => `[${names.map((name) => `"${name}"`).join(", ")}]`;

/** Returns e.g. `a, b and c`. */
const enumeration = (derived: TaskShape["derived"]): string =>
  new Intl.ListFormat("en-GB").format(derived.map(({ phrase }) => phrase));

/** Returns a random part of `items` in order, at least one. */
function some<T>(items: readonly T[], probability: number, draw: Draw): T[] {
  const kept = items.filter(() => draw.chance(probability));
  return kept.length > 0 ? kept : [draw.pick(items)];
}

const adding = (derived: TaskShape["derived"]): string[] =>
  derived.map(({ column, expression }) => `d["${column}"] = ${expression}`);

const selecting = (columns: readonly string[]): string[] => [
  `columns = ${list(columns)}`,
  "X = train[columns]",
  "X_test = test[columns]",
];

function tableFeatures(shape: TaskShape, draw: Draw): Features {
  const { target, categorical, ranks } = shape;
  const derived = draw.chance(0.3) ? some(shape.derived, 0.25, draw) : [];
  const mentioned = derived.length > 0 ? ` Add ${enumeration(derived)}.` : "";
  const features = (sentence: string, matrix: readonly string[], frame: readonly string[] = []): Features => ({
    sentence: `${sentence}${mentioned}`,
    frame: [...adding(derived), ...frame],
    matrix,
    imports: [],
    families: tabularFamilies,
  });
  const dropped = [`X = train.drop(columns=["id", "${target}"])`, 'X_test = test.drop(columns=["id"])'];
  switch (draw.weighted([24, "numeric"], [30, "codes"], [28, "oneHot"], [ranks ? 10 : 0, "ranks"], [8, "means"])) {
    case "numeric": {
      const columns = [...some(shape.numeric, 0.75, draw), ...derived.map(({ column }) => column)];
      return features(draw.pick(["Use only numeric columns.", "Keep a few numeric columns."]), selecting(columns));
    }
    case "codes":
      return features(draw.pick(["Encode the categories as integer codes.", "Turn categories into codes."]), dropped, [
        `for c in ${list(categorical)}:`,
        '    d[c] = d[c].astype("category").cat.codes',
      ]);
    case "oneHot":
      return features(draw.pick(["One-hot encode the categories.", "Use dummy columns for the categories."]), [
        `X = pd.get_dummies(train.drop(columns=["id", "${target}"]))`,
        'X_test = pd.get_dummies(test.drop(columns=["id"])).reindex(columns=X.columns, fill_value=0)',
      ]);
    case "ranks":
      return features(
        draw.pick(["Rank the categories from worst to best.", "Order the categories by quality."]),
        dropped,
        Object.entries(ranks ?? {}).map(([column, rank]) => `d["${column}"] = d["${column}"].map(${rank})`),
      );
    case "means":
      return features(`Replace each category by its mean ${target}.`, [
        `for c in ${list(categorical)}:`,
        `    means = train.groupby(c)["${target}"].mean()`,
        "    train[c] = train[c].map(means)",
        "    test[c] = test[c].map(means)",
        ...dropped,
      ]);
  }
}

function lengthFeatures(shape: TaskShape, draw: Draw): Features {
  const derived = some(shape.derived, 0.4, draw);
  const matrix = selecting(derived.map(({ column }) => column));
  const sentence = `Count ${enumeration(derived)} in each text.`;
  return { sentence, imports: [], frame: adding(derived), matrix, families: tabularFamilies };
}

const wordArguments = (draw: Draw): Arguments => ({
  ngram_range: draw.maybe(0.25, ["(1, 2)", "(1, 2)", "(1, 2)", "(1, 3)"]),
  min_df: draw.maybe(0.4, [2, 2, 3, 5, 10]),
  max_features: draw.maybe(0.25, [300, 500, 1000, 2000, 3000, 5000]),
  stop_words: draw.chance(0.15) ? '"english"' : undefined,
  sublinear_tf: draw.chance(0.2) ? "True" : undefined,
});

const words = (draw: Draw): string => call("TfidfVectorizer", wordArguments(draw));

const characters = (draw: Draw): string =>
  call("TfidfVectorizer", {
    analyzer: draw.pick(['"char"', '"char_wb"']),
    ngram_range: draw.pick(["(2, 3)", "(2, 4)", "(2, 5)", "(3, 4)", "(3, 5)"]),
    min_df: draw.maybe(0.4, [2, 3, 5]),
    sublinear_tf: draw.chance(0.2) ? "True" : undefined,
  });

function textFeatures(column: string, draw: Draw): Features {
  const features = (sentence: string, vectorizer: string, ...others: string[]): Features => ({
    sentence,
    frame: [],
    families: sparseFamilies,
    imports: [
      `from sklearn.feature_extraction.text import ${/(Count|Tfidf)Vectorizer/.exec(vectorizer)![0]}`,
      ...others,
    ],
    matrix: [
      `vectorizer = ${vectorizer}`,
      `X = vectorizer.fit_transform(train["${column}"])`,
      `X_test = vectorizer.transform(test["${column}"])`,
    ],
  });
  switch (draw.weighted([24, "counts"], [50, "words"], [7, "characters"], [7, "union"], [10, "reduced"])) {
    case "counts": {
      const { sublinear_tf: _, ...counted } = wordArguments(draw);
      return features(draw.pick(["Count words.", "Use a bag of words."]), call("CountVectorizer", counted));
    }
    case "words":
      return features(draw.pick(["Use tf-idf of words.", "Weight words by tf-idf."]), words(draw));
    case "characters":
      return features(
        draw.pick(["Use tf-idf of character sequences.", "Weight short character sequences by tf-idf."]),
        characters(draw),
      );
    case "union":
      return features(
        draw.pick(["Join tf-idf of words and of characters.", "Use both words and character sequences."]),
        `make_union(${words(draw)}, ${characters(draw)})`,
        "from sklearn.pipeline import make_union",
      );
    case "reduced": {
      const reduced = features(
        draw.pick(["Reduce tf-idf to a few dimensions.", "Use latent semantic analysis."]),
        `make_pipeline(${words(draw)}, TruncatedSVD(${draw.pick([5, 10, 20, 30, 50])}))`,
        "from sklearn.decomposition import TruncatedSVD",
        "from sklearn.pipeline import make_pipeline",
      );
      return { ...reduced, families: tabularFamilies };
    }
  }
}

/** Writes a plan and the lines of a program. The same design gives different words, but never a different computation. */
export function writeDraft(design: Design, shape: TaskShape, draw: Draw) {
  const { features, model, logTarget, report } = design;
  const target = logTarget ? `log ${shape.target}` : `the ${shape.target}`;
  const plan = [
    features.sentence,
    `${draw.pick(["Fit", "Train"])} ${model.phrase} ${draw.pick(["on", "for"])} ${target}.`,
    ...(report === "nothing" ? [] : [draw.pick(REPORTED[report])]),
    draw.pick(["Predict the test rows.", "Write the predictions for the test set.", "Save the submission."]),
  ].join(" ");

  const body = [
    'train = pd.read_csv("input/train.csv")',
    'test = pd.read_csv("input/test.csv")',
    ...(features.frame.length > 0 ? ["for d in [train, test]:", ...features.frame.map((line) => `    ${line}`)] : []),
    ...features.matrix,
    logTarget ? `y = np.log(train["${shape.target}"])` : `y = train["${shape.target}"]`,
    `model = ${model.code}`,
  ];
  const imports = ["import pandas as pd", ...features.imports, ...model.imports];
  if (report === "validation") {
    imports.push("from sklearn.model_selection import train_test_split");
    body.push(
      `A, B, a, b = train_test_split(X, y, test_size=${draw.pick([0.1, 0.2, 0.25, 0.3])})`,
      "model.fit(A, a)",
      "validation_loss = np.abs(b - model.predict(B)).mean()",
      'print("validation loss:", validation_loss)',
    );
  }
  body.push("model.fit(X, y)");
  if (report === "training")
    body.push("training_loss = np.abs(y - model.predict(X)).mean()", 'print("training loss:", training_loss)');
  body.push(
    `test["${shape.target}"] = ${logTarget ? "np.exp(model.predict(X_test))" : "model.predict(X_test)"}`,
    `test[["id", "${shape.target}"]].to_csv("submission.csv", index=False)`,
  );
  if (body.some((line) => line.includes("np."))) imports.push("import numpy as np");
  return { plan, lines: [...[...new Set(imports)].sort(importOrder), ...body] };
}

/** numpy, pandas, then scikit-learn: the usual order. */
function importOrder(a: string, b: string): number {
  const rank = (line: string) => (line.startsWith("import") ? 0 : 1);
  return rank(a) - rank(b) || (a < b ? -1 : a > b ? 1 : 0);
}
