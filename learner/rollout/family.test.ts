import assert from "node:assert/strict";
import { test } from "node:test";
import { family } from "./family.ts";

const cases: [string, string][] = [
  ["model = LinearRegression()", "linear"],
  ["model = Ridge(alpha=1)", "ridge"],
  ["model = RidgeCV()", "ridge"],
  ["model = ElasticNet(alpha=1)", "lasso"],
  ["model = make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge())", "polynomial"],
  ["model = DecisionTreeRegressor(max_depth=3)", "tree"],
  ["model = RandomForestRegressor(n_estimators=10)", "random forest"],
  ["model = RandomForestClassifier()", "random forest"],
  ["model = ExtraTreesRegressor()", "extra trees"],
  ["model = BaggingRegressor(DecisionTreeRegressor())", "bagging"],
  ["model = GradientBoostingRegressor()", "gradient boosting"],
  ["model = HistGradientBoostingRegressor()", "histogram boosting"],
  ["model = KNeighborsRegressor(n_neighbors=5)", "nearest neighbors"],
  ["model = MLPRegressor(\n    (100,))", "neural network"],
  ["model = make_pipeline(StandardScaler(), SVR(C=1))", "SVM"],
  ["model = LinearSVR()", "linear SVM"],
  ["model = SGDRegressor()", "stochastic gradient"],
  ['model = VotingRegressor([("a", Ridge()), ("b", SVR())])', "average"],
  ['model = StackingRegressor([("a", VotingRegressor([]))])', "stack"],
  ['model = DummyRegressor(strategy="mean")', "constant"],
  ["model = LogisticRegression()", "logistic regression"],
  ["model = lgb.LGBMClassifier()", "lightgbm"],
  ["model = xgb.XGBRegressor()", "xgboost"],
  ["net = nn.Sequential(nn.Linear(3, 1))", "torch network"],
  ["v = TfidfVectorizer()\nmodel = Ridge()", "tf-idf ridge"],
  ["v = CountVectorizer()\nmodel = Ridge()", "counts ridge"],
  ['v = TfidfVectorizer(analyzer="char_wb")\nmodel = Ridge()', "chars ridge"],
  ["v = make_union(TfidfVectorizer(), TfidfVectorizer(analyzer='char'))\nmodel = Ridge()", "words+chars ridge"],
  ["v = make_pipeline(TfidfVectorizer(), TruncatedSVD(5))\nmodel = Ridge()", "LSA ridge"],
  ["from sklearn.ensemble import RandomForestRegressor\nmodel = Ridge()", "ridge"],
  ["# LinearRegression() was worse\nmodel = Ridge()", "ridge"],
  ["print(1)", "other"],
  ["", "other"],
];

test("a program's family follows from its features and its model", async (t) => {
  for (const [program, name] of cases) await t.test(program || "nothing", () => assert.equal(family(program), name));
});
