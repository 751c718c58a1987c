import type { SyntaxNode } from "@lezer/common";
import { assignmentOf, type Call, callsOf, type Statement, variablesOf, visit } from "./instrument-tree.ts";

/** Knowledge about a program's names. */
export interface Names {
  /** Whether a name holds something made from the test set. A name that is missing here is judged by its spelling. */
  test: Map<string, boolean>;
  kinds: Map<string, "model" | "transformer">;
  /** Classes of the program that are models, such as `class Net(nn.Module)`. */
  modelClasses: Set<string>;
}

const estimators =
  /(Classifier|Regressor|Regression|Ridge|Lasso|LassoLars|ElasticNet|Lars|MatchingPursuit|SV[CR]|NB|DiscriminantAnalysis|NearestCentroid|Search|Booster|Sequential|Net|Model|Perceptron|CatBoost|Classification|OLS|GLM)(CV|IC)?$/;
const transformers =
  /(Scaler|Encoder|Vectorizer|PCA|SVD|Imputer|Normalizer|Binarizer|Transformer|PolynomialFeatures|^Select\w+|Discretizer|Tokenizer|NMF|Hasher|FeatureUnion|Sampler|Nystroem|TSNE|VarianceThreshold|RFE|DirichletAllocation|KMeans|ICA|^make_(union|column_transformer))(CV)?$/;
const transformerNames =
  /scal|enc|vec|pca|svd|imput|tfidf|transf|prep|tok|norm|poly|select|binar|quant|^ct$|^le$|^ohe$/i;
const pipelines = /^(make_pipeline|make_imb_pipeline|Pipeline)$/;
const imageModels =
  /^(create_model|resnet|resnext|vgg|densenet|efficientnet|mobilenet|alexnet|inception|vit|swin|convnext)/;
/** Image models that were imported by name: `resnet50`, `vit_b_16`. */
const importedImageModels =
  /^(resnet|resnext|vgg|densenet|efficientnet|mobilenet|alexnet|inception|vit|swin|convnext)\w*\d\w*$/;
const splits = /^(train_test_split|random_split)$/;
const splitters = /fold|kf|cv|split|sss/i;
/** Names of column lists, which may be read from the test set without holding its data. */
const readsColumns = /(^|_)(cols?|columns?|feats?|features?|fields|keys|names|classes)(_|$|\d)/i;
const readsTest = /test|tst|(^|_|X)te(_|\d|$)/i;
const readsTrain = /train|valid|(^|_|X)(tr|trn|val|va|dev|oof|holdout|hold)(_|\d|$)/i;

/** Updates `names` with the contents of the names that a statement binds. */
export function learnNames({ node, kind }: Statement, text: string, names: Names): void {
  if (kind === "ClassDefinition") {
    const [[name], bases] = [variablesOf(node, text), node.getChild("ArgList")];
    if (name && bases && /Module|Model|Estimator|Regressor|Classifier/.test(text.slice(bases.from, bases.to)))
      names.modelClasses.add(name);
  }
  const assigned = assignmentOf(node, text);
  if (!assigned) return;
  const { targets, values } = assigned;
  // `a, b = c, d` is two assignments; otherwise all targets come from one expression.
  if (targets.length > 1 && targets.length === values.length)
    for (const [index, target] of targets.entries()) learnTargets([target], values[index]!, kind, text, names);
  else learnTargets(targets, values[0]!, kind, text, names);
}

function learnTargets(targets: string[], value: SyntaxNode, kind: string, text: string, names: Names): void {
  const calls = callsOf(value, text);
  // Parts of the training set, even if they are called X_test.
  const heldOut = calls.some(
    ({ name, receivers }) =>
      splits.test(name) || (name === "split" && receivers.some((receiver) => splitters.test(receiver))),
  );
  const tainted = !heldOut && fromTest(value, text, names);
  const alone = targets.length === 1 || kind === "ForStatement";
  for (const target of targets) {
    const lends = tainted && alone && !readsColumns.test(target);
    names.test.set(target, !heldOut && !readsTrain.test(target) && (readsTest.test(target) || lends));
    if (calls.some((call) => makesModel(call, names))) names.kinds.set(target, "model");
    else if (calls.some(({ name }) => transformers.test(name))) names.kinds.set(target, "transformer");
  }
}

/** Returns whether an expression is made from the test set: by its names, or by a string with the file's name. */
export function fromTest(node: SyntaxNode, text: string, names: Names): boolean {
  let found = false;
  visit(node, (part) => {
    const source = text.slice(part.from, part.to);
    if (part.name === "VariableName")
      found ||= names.test.get(source) ?? (readsTest.test(source) && !readsTrain.test(source));
    else if (part.name === "String" || part.name === "FormatString") found ||= /(^|[^a-z])test/i.test(source);
  });
  return found;
}

/** Returns whether a call makes something that can be trained and predicts. */
export function makesModel({ name, receivers, arguments: list }: Call, names: Names): boolean {
  if (pipelines.test(name)) return holdsModel(list, names);
  if (name === "from_pretrained") return /Model|For[A-Z]/.test(receivers[0] ?? "");
  if (receivers[0] === "models" || receivers[0] === "timm") return imageModels.test(name);
  if (receivers.length === 0 && importedImageModels.test(name)) return true;
  return isModelClass(name, names);
}

function isModelClass(name: string, names: Names): boolean {
  return names.modelClasses.has(name) || (/^[A-Z]/.test(name) && estimators.test(name) && !transformers.test(name));
}

/** Returns whether the receiver of a `fit` is a model: by its constructor, by its name's kind, or by the name's spelling. */
export function isModel(call: Call, text: string, names: Names): boolean {
  const [receiver = ""] = call.receivers;
  const inner = call.node.firstChild && callsOf(call.node.firstChild, text).at(0);
  if (inner && /^[A-Z]|^make_/.test(inner.name))
    return makesModel(inner, names) || (!transformers.test(inner.name) && !pipelines.test(inner.name));
  const kind = names.kinds.get(receiver);
  return kind ? kind === "model" : !transformerNames.test(receiver);
}

/** Returns whether a step of a pipeline is a model: an estimator, a name that holds one, or an unknown last step. */
function holdsModel(steps: string, names: Names): boolean {
  const words = steps.replace(/(["'])(?:\\.|(?!\1).)*\1/g, "").match(/\b[A-Za-z_]\w*\b(?!\s*=)/g) ?? [];
  if (words.some((word) => names.kinds.get(word) === "model" || isModelClass(word, names))) return true;
  const last = words.at(-1) ?? "";
  const isKnown = names.kinds.has(last) || transformerNames.test(last) || words.some((word) => transformers.test(word));
  return /^[a-z]/.test(last) && !isKnown;
}
