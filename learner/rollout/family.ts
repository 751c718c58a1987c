/** Estimators by their names in reports; names that contain others come first. */
const families: readonly [name: string, pattern: RegExp][] = [
  ["stack", /\bStacking(Regressor|Classifier)\s*\(/],
  ["average", /\bVoting(Regressor|Classifier)\s*\(/],
  ["bagging", /\bBagging(Regressor|Classifier)\s*\(/],
  ["xgboost", /\bXGB(Regressor|Classifier|RFRegressor)\s*\(|\bxgb\.train\s*\(/],
  ["lightgbm", /\bLGBM(Regressor|Classifier)\s*\(|\blgb\.train\s*\(/],
  ["catboost", /\bCatBoost(Regressor|Classifier)?\s*\(/],
  ["histogram boosting", /\bHistGradientBoosting(Regressor|Classifier)\s*\(/],
  ["gradient boosting", /\bGradientBoosting(Regressor|Classifier)\s*\(/],
  ["ada boost", /\bAdaBoost(Regressor|Classifier)\s*\(/],
  ["random forest", /\bRandomForest(Regressor|Classifier)\s*\(/],
  ["extra trees", /\bExtraTrees(Regressor|Classifier)\s*\(/],
  ["tree", /\b(Decision|Extra)Tree(Regressor|Classifier)\s*\(/],
  ["torch network", /\bnn\.(Sequential|Module|Linear)\b/],
  ["neural network", /\bMLP(Regressor|Classifier)\s*\(/],
  ["nearest neighbors", /\bKNeighbors(Regressor|Classifier)\s*\(/],
  ["naive Bayes", /\b(Gaussian|Multinomial|Bernoulli|Complement|Categorical)NB\s*\(/],
  ["Gaussian process", /\bGaussianProcess(Regressor|Classifier)\s*\(/],
  ["linear SVM", /\bLinearSV[RC]\s*\(/],
  ["SVM", /\b(Nu)?SV[RC]\s*\(/],
  ["stochastic gradient", /\bSGD(Regressor|Classifier)\s*\(/],
  ["polynomial", /\bPolynomialFeatures\s*\(/],
  ["lasso", /\b(Lasso|ElasticNet)(CV)?\s*\(/],
  ["ridge", /\b(Kernel|Bayesian)?Ridge(CV|Classifier)?\s*\(/],
  ["logistic regression", /\bLogisticRegression(CV)?\s*\(/],
  ["linear", /\bLinearRegression\s*\(|\blstsq\s*\(|\bpolyfit\s*\(/],
  ["constant", /\bDummy(Regressor|Classifier)\s*\(/],
];

/** How text became numbers; precedes the estimator's name. */
const texts: readonly [name: string, pattern: RegExp][] = [
  ["LSA", /\bTruncatedSVD\s*\(/],
  ["words+chars", /\b(make_union|FeatureUnion)\s*\(/],
  ["chars", /analyzer\s*=\s*["']char/],
  ["tf-idf", /\b(Tfidf|Hashing)Vectorizer\s*\(/],
  ["counts", /\bCountVectorizer\s*\(/],
];

/**
 * Returns the model family of a program, from its text alone: `ridge`, `tf-idf ridge`; `other` if it builds no known estimator. If it
 * builds several, the first of the table counts. Reports use it to show whether a policy collapses onto one family.
 */
export function family(program: string): string {
  const code = program.replace(/^\s*(from|import)\b.*$/gm, "").replace(/#.*$/gm, "");
  const name = families.find(([, pattern]) => pattern.test(code))?.[0] ?? "other";
  const text = texts.find(([, pattern]) => pattern.test(code))?.[0];
  return text === undefined ? name : `${text} ${name}`;
}
