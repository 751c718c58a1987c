import type { SyntaxNode } from "@lezer/common";
import { fromTest, isModel, makesModel, type Names } from "./instrument-names.ts";
import { assignmentOf, type Call, callsOf, type Statement, visit } from "./instrument-tree.ts";

/** An action of a statement that a marker reports. */
export type Event = "load" | "define" | "train" | "predict";

export interface StatementEvents {
  /** Events that a marker can report after the statement, or inside its suites. */
  events: Set<Event>;
  /** The same, plus events that the functions it calls report themselves. */
  happens: Set<Event>;
  /** The statement predicts something, for the test set or not. */
  predicts: boolean;
  readsImage: boolean;
}

/** The effects of calling a function of the program. */
export interface FunctionSummary {
  events: Set<Event>;
  /** Events after which no line can be inserted, as in `return model.fit(X, y)`. */
  unmarked: Set<Event>;
  predicts: boolean;
}

export interface Loss {
  marker: "training loss" | "testing loss";
  /** The name that holds the loss, if it is one plain name. */
  value?: string;
}

const readers =
  /^(read_(csv|json|parquet|table|excel|feather|pickle|fwf|hdf|sql|xml|stata|orc|ndjson)|scan_(csv|parquet)|loadtxt|genfromtxt|load_dataset|fromfile|DictReader|ImageFolder)$/;
/** Functions that read one image; inside a function they run once for every image. */
const imageReaders = /^(imread|read_image)$/;
const solvers = /^(lstsq|solve|polyfit|minimize|curve_fit|least_squares)$/;
const fits = /^(fit|partial_fit|fit_predict)$/;
const crossValidation = /^cross_val(_score|idate|_predict)$/;
const predictors = /^(predict\w*|decision_function|\w*_?infer(ence)?)$/;
const products = /^(dot|matmul|polyval)$/;
const losses =
  /(^|_)(mae|mse|rmse|rmsle|mape|r2|auc|loss|accuracy|acc|f1|error|score|nll|kappa|criterion|metric|entropy)(_|$|\d)|^(criterion|cross_val_score|pearsonr|spearmanr|loss_fn)$/i;
const reductions = /^(mean|sqrt|sum|average|median|item|float|norm)$/;
/** Predictions of a training set by models that did not see the row. */
const outOfFold = /(^|_)oof(_|$|\d)/i;
const trainWords = /(^|_|X|y)(train|training|trn|tr)(_|$|\d)/i;
const heldOutWords = /(^|_|X|y)(validation|valid|val|va|testing|test|te|holdout|hold|oof|dev|cv|eval)(_|$|\d)/i;

/** Returns the events of a statement itself, without the suites of a compound statement. */
export function eventsOf(
  { node, kind }: Statement,
  text: string,
  names: Names,
  functions: Map<string, FunctionSummary>,
): StatementEvents {
  const events = new Set<Event>();
  const happens = new Set<Event>();
  let [predicts, readsImage] = [false, false];
  if (/Definition$|^Import/.test(kind)) return { events, predicts, happens, readsImage };
  for (const call of callsOf(node, text)) {
    const { name, receivers } = call;
    const called = functions.get(name);
    if (called) {
      for (const event of called.events) happens.add(event);
      for (const event of called.unmarked) if (event !== "predict") events.add(event);
    }
    if (isLoad(call)) events.add("load");
    readsImage ||= imageReaders.test(name) || (name === "open" && receivers[0] === "Image");
    if (makesModel(call, names)) events.add("define");
    if (isTraining(call, text, names)) events.add("train");
    // A torch model is called by its name.
    const applied = names.kinds.get(name) === "model" && receivers.length === 0;
    if (!(called?.predicts || predictors.test(name) || products.test(name) || applied)) continue;
    predicts = true;
    const marked = called?.events.has("predict") && !called.unmarked.has("predict");
    const about = products.test(name) ? call.node : call.node.getChild("ArgList")!;
    if (!marked && (fromTest(about, text, names) || inComprehensionOverTest(call.node, text, names)))
      events.add("predict");
  }
  visit(node, (part) => {
    if (part.name !== "BinaryExpression") return;
    if (!part.getChildren("ArithOp").some((operator) => text[operator.from] === "@")) return;
    predicts = true;
    if (fromTest(part, text, names)) events.add("predict");
  });
  for (const event of events) happens.add(event);
  return { events, predicts, happens, readsImage };
}

/** Matches `[predict(row) for row in test]`. */
function inComprehensionOverTest(node: SyntaxNode, text: string, names: Names): boolean {
  for (let at: SyntaxNode | null = node; at && !/Statement$|^Body$/.test(at.name); at = at.parent)
    if (/Comprehension/.test(at.name) && fromTest(at, text, names)) return true;
  return false;
}

function isLoad({ name, receivers, arguments: list }: Call): boolean {
  if (/sample_?sub/i.test(list)) return false;
  if (readers.test(name)) return true;
  if (name === "load") return /^(np|numpy|torch|joblib|json)$/.test(receivers[0] ?? "");
  return name === "reader" && receivers[0] === "csv";
}

function isTraining(call: Call, text: string, names: Names): boolean {
  const { name, receivers, arguments: list } = call;
  if (crossValidation.test(name)) return true;
  if (solvers.test(name)) return receivers.length > 0;
  // xgb.train(params, data) and trainer.train() train; model.train() of torch only switches to training mode.
  if (name === "train") return receivers.length > 0 && (list.trim() !== "" || /trainer/i.test(receivers[0]!));
  // scaler.step(optimizer) too
  if (name === "step") return /opt/i.test(receivers[0] ?? "") || /opt/i.test(list);
  return fits.test(name) && call.node.firstChild?.name === "MemberExpression" && isModel(call, text, names);
}

/** Returns the loss or score that a statement visibly computes on training or held-out data. */
export function lossOf({ node, kind, bodies }: Statement, text: string): Loss | undefined {
  if (bodies.length > 0 || /^(Import|Return|Assert|Raise)/.test(kind)) return undefined;
  const assigned = assignmentOf(node, text);
  const named = assigned?.targets.length === 1 && node.firstChild?.name === "VariableName";
  const target = named ? assigned.targets[0] : undefined;
  const calls = callsOf(node, text);
  const call =
    calls.find(({ name, receivers }) => losses.test(name) && (name !== "score" || receivers.length > 0)) ??
    // `val_rmse = np.sqrt(np.mean((p - y_val) ** 2))`
    (target && losses.test(target) ? calls.find(({ name }) => reductions.test(name)) : undefined);
  if (!call) return undefined;
  // The target's name decides, then the computation's inputs, then the text printed beside it.
  const computedFrom = () => sideOf(call.arguments.replace(/(["'])(?:\\.|(?!\1).)*\1/g, ""));
  const isLoss = /^(train_)?loss$/i.test(target ?? "") && /criterion|loss|entropy/i.test(call.name);
  const marker =
    (target && sideOf(target)) ||
    (crossValidation.test(call.name) ? "testing loss" : computedFrom()) ||
    (kind === "ExpressionStatement" ? sideOf(text.slice(node.from, node.to)) : undefined) ||
    (isLoss ? "training loss" : undefined);
  return marker && { marker, ...(target && kind === "AssignStatement" && { value: target }) };
}

/** Returns which data a piece of code mentions; undefined for neither or both. */
function sideOf(code: string): Loss["marker"] | undefined {
  const words = code.match(/[A-Za-z_]\w*/g) ?? [];
  if (words.some((word) => outOfFold.test(word))) return "testing loss";
  const train = words.some((word) => trainWords.test(word));
  const heldOut = words.some((word) => heldOutWords.test(word));
  if (train === heldOut) return undefined;
  return train ? "training loss" : "testing loss";
}
