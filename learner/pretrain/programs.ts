import type { Draw } from "./draw.ts";
import { type Choices, type Estimator, type Family, sparseFamilies, tabularFamilies } from "./estimators.ts";
import type { TaskShape } from "./shapes.ts";

/** The choices that make a program. Two programs differ by any of them; an improved program keeps some. */
export interface Design {
  features: Features;
  family: Family;
  model: Estimator;
  logTarget: boolean;
  report: Report;
}

/** How the columns become a matrix. `frame` runs for both frames as `d`; `matrix` makes X and X_test. */
interface Features {
  sentence: string;
  imports: readonly string[];
  frame: readonly string[];
  matrix: readonly string[];
  families: Choices;
}

type Report = "nothing" | "training" | "validation";

/** A plan and a program that agree with each other. */
export interface Draft {
  plan: string;
  lines: string[];
}

export function drawDesign(shape: TaskShape, draw: Draw): Design {
  const features = drawFeatures(shape, draw);
  const family = draw.weighted(features.families);
  return {
    features,
    family,
    model: family(draw),
    logTarget: shape.text === undefined && draw.chance(0.18),
    report: drawReport(draw),
  };
}

/** The design with one of its choices drawn anew, whether that is for the better or not. */
export function redrawPart(design: Design, shape: TaskShape, draw: Draw): Design {
  const part = draw.weighted([
    [3, "parameters"],
    [3, "family"],
    [3, "features"],
    [shape.text === undefined ? 2 : 0, "target"],
    [1, "report"],
  ] as const);
  switch (part) {
    case "parameters":
      return { ...design, model: design.family(draw) };
    case "family": {
      const family = draw.weighted(design.features.families);
      return { ...design, family, model: family(draw) };
    }
    case "features": {
      const fresh = drawDesign(shape, draw);
      // A model for a sparse matrix may not be one for a table.
      return fresh.features.families === design.features.families ? { ...design, features: fresh.features } : fresh;
    }
    case "target":
      return { ...design, logTarget: !design.logTarget };
    case "report":
      return { ...design, report: drawReport(draw) };
  }
}

function drawReport(draw: Draw): Report {
  return draw.weighted([
    [4, "nothing"],
    [4, "training"],
    [2, "validation"],
  ] as const);
}

function drawFeatures(shape: TaskShape, draw: Draw): Features {
  if (shape.text === undefined) return tableFeatures(shape, draw);
  return draw.chance(0.12) ? lengthFeatures(shape, draw) : textFeatures(shape.text, draw);
}

function list(names: readonly string[]): string {
  return `[${names.map((name) => `"${name}"`).join(", ")}]`;
}

function enumeration(phrases: readonly string[]): string {
  return phrases.length < 2 ? phrases.join("") : `${phrases.slice(0, -1).join(", ")} and ${phrases.at(-1)}`;
}

/** `items` in their order, each kept or not, at least one. */
function some<T>(items: readonly T[], probability: number, draw: Draw): T[] {
  const kept = items.filter(() => draw.chance(probability));
  return kept.length > 0 ? kept : [draw.pick(items)];
}

function tableFeatures(shape: TaskShape, draw: Draw): Features {
  const derived = draw.chance(0.3) ? some(shape.derived, 0.25, draw) : [];
  const frame = derived.map(({ column, expression }) => `d["${column}"] = ${expression}`);
  const added = derived.length > 0 ? ` Add ${enumeration(derived.map(({ phrase }) => phrase))}.` : "";
  const dropped = [`X = train.drop(columns=["id", "${shape.target}"])`, 'X_test = test.drop(columns=["id"])'];
  const base = { imports: [], families: tabularFamilies };
  const encoding = draw.weighted([
    [24, "numeric"],
    [30, "codes"],
    [28, "oneHot"],
    [shape.ranks ? 10 : 0, "ranks"],
    [8, "means"],
  ] as const);
  switch (encoding) {
    case "numeric": {
      const columns = [...some(shape.numeric, 0.75, draw), ...derived.map(({ column }) => column)];
      const sentence = `${draw.pick(["Use only numeric columns.", "Keep a few numeric columns."])}${added}`;
      const matrix = [`columns = ${list(columns)}`, "X = train[columns]", "X_test = test[columns]"];
      return { ...base, sentence, frame, matrix };
    }
    case "codes":
      return {
        ...base,
        sentence: `${draw.pick(["Encode the categories as integer codes.", "Turn categories into codes."])}${added}`,
        frame: [...frame, `for c in ${list(shape.categorical)}:`, '    d[c] = d[c].astype("category").cat.codes'],
        matrix: dropped,
      };
    case "oneHot":
      return {
        ...base,
        sentence: `${draw.pick(["One-hot encode the categories.", "Use dummy columns for the categories."])}${added}`,
        frame,
        matrix: [
          `X = pd.get_dummies(train.drop(columns=["id", "${shape.target}"]))`,
          'X_test = pd.get_dummies(test.drop(columns=["id"])).reindex(columns=X.columns, fill_value=0)',
        ],
      };
    case "ranks":
      return {
        ...base,
        sentence: `${draw.pick(["Rank the categories from worst to best.", "Order the categories by quality."])}${added}`,
        frame: [
          ...frame,
          ...Object.entries(shape.ranks ?? {}).map(
            ([column, ranks]) => `d["${column}"] = d["${column}"].map(${ranks})`,
          ),
        ],
        matrix: dropped,
      };
    case "means":
      return {
        ...base,
        sentence: `Replace each category by its mean ${shape.target}.${added}`,
        frame,
        matrix: [
          `for c in ${list(shape.categorical)}:`,
          `    means = train.groupby(c)["${shape.target}"].mean()`,
          "    train[c] = train[c].map(means)",
          "    test[c] = test[c].map(means)",
          ...dropped,
        ],
      };
  }
}

function lengthFeatures(shape: TaskShape, draw: Draw): Features {
  const derived = some(shape.derived, 0.4, draw);
  return {
    sentence: `Count ${enumeration(derived.map(({ phrase }) => phrase))} in each text.`,
    imports: [],
    frame: derived.map(({ column, expression }) => `d["${column}"] = ${expression}`),
    matrix: [`columns = ${list(derived.map(({ column }) => column))}`, "X = train[columns]", "X_test = test[columns]"],
    families: tabularFamilies,
  };
}

const tfidfImport = "from sklearn.feature_extraction.text import TfidfVectorizer";

function options(values: Record<string, string | number | undefined>): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  return given.map(([key, value]) => `${key}=${value}`).join(", ");
}

function wordOptions(draw: Draw): string {
  return options({
    ngram_range: draw.chance(0.25) ? draw.pick(["(1, 2)", "(1, 2)", "(1, 2)", "(1, 3)"]) : undefined,
    min_df: draw.chance(0.4) ? draw.pick([2, 2, 3, 5, 10]) : undefined,
    max_features: draw.chance(0.25) ? draw.pick([300, 500, 1000, 2000, 3000, 5000]) : undefined,
    stop_words: draw.chance(0.15) ? '"english"' : undefined,
    sublinear_tf: draw.chance(0.2) ? "True" : undefined,
  });
}

function charOptions(draw: Draw): string {
  return options({
    analyzer: draw.pick(['"char"', '"char_wb"']),
    ngram_range: draw.pick(["(2, 3)", "(2, 4)", "(2, 5)", "(3, 4)", "(3, 5)"]),
    min_df: draw.chance(0.4) ? draw.pick([2, 3, 5]) : undefined,
    sublinear_tf: draw.chance(0.2) ? "True" : undefined,
  });
}

function textFeatures(column: string, draw: Draw): Features {
  const kind = draw.weighted([
    [24, "counts"],
    [50, "words"],
    [7, "characters"],
    [7, "union"],
    [10, "reduced"],
  ] as const);
  const matrix = (vectorizer: string) => [
    `vectorizer = ${vectorizer}`,
    `X = vectorizer.fit_transform(train["${column}"])`,
    `X_test = vectorizer.transform(test["${column}"])`,
  ];
  const base = { frame: [], families: sparseFamilies };
  switch (kind) {
    case "counts": {
      const words = wordOptions(draw).replace(/,? ?sublinear_tf=True/, "");
      return {
        ...base,
        sentence: draw.pick(["Count words.", "Use a bag of words."]),
        imports: ["from sklearn.feature_extraction.text import CountVectorizer"],
        matrix: matrix(`CountVectorizer(${words})`),
      };
    }
    case "words":
      return {
        ...base,
        sentence: draw.pick(["Use tf-idf of words.", "Weight words by tf-idf."]),
        imports: [tfidfImport],
        matrix: matrix(`TfidfVectorizer(${wordOptions(draw)})`),
      };
    case "characters":
      return {
        ...base,
        sentence: draw.pick(["Use tf-idf of character sequences.", "Weight short character sequences by tf-idf."]),
        imports: [tfidfImport],
        matrix: matrix(`TfidfVectorizer(${charOptions(draw)})`),
      };
    case "union":
      return {
        ...base,
        sentence: draw.pick(["Join tf-idf of words and of characters.", "Use both words and character sequences."]),
        imports: [tfidfImport, "from sklearn.pipeline import make_union"],
        matrix: matrix(`make_union(TfidfVectorizer(${wordOptions(draw)}), TfidfVectorizer(${charOptions(draw)}))`),
      };
    case "reduced":
      return {
        families: tabularFamilies,
        frame: [],
        sentence: draw.pick(["Reduce tf-idf to a few dimensions.", "Use latent semantic analysis."]),
        imports: [
          tfidfImport,
          "from sklearn.decomposition import TruncatedSVD",
          "from sklearn.pipeline import make_pipeline",
        ],
        matrix: matrix(
          `make_pipeline(TfidfVectorizer(${wordOptions(draw)}), TruncatedSVD(${draw.pick([5, 10, 20, 30, 50])}))`,
        ),
      };
  }
}

/** Writes the design down. The same design gives different words, never a different computation. */
export function writeDraft(design: Design, shape: TaskShape, draw: Draw): Draft {
  const { features, model, logTarget, report } = design;
  const target = logTarget ? `log ${shape.target}` : `the ${shape.target}`;
  const plan = [
    features.sentence,
    `${draw.pick(["Fit", "Train"])} ${model.phrase} ${draw.pick(["on", "for"])} ${target}.`,
    ...(report === "nothing" ? [] : [reportSentence(report, draw)]),
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

/** numpy, pandas, then scikit-learn: in the order in which people write them. */
function importOrder(a: string, b: string): number {
  const rank = (line: string) => (line.startsWith("import") ? 0 : 1);
  return rank(a) - rank(b) || (a < b ? -1 : a > b ? 1 : 0);
}

function reportSentence(report: Report, draw: Draw): string {
  return report === "training"
    ? draw.pick(["Print the training loss.", "Look at the training loss."])
    : draw.pick(["Validate on a held-out part.", "Check a validation split."]);
}
