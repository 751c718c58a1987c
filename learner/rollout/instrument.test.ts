import assert from "node:assert/strict";
import { test } from "node:test";
import { MARKERS, type Marker } from "../../proto/markers.ts";
import { instrument, verifyInstrumented, withNonce } from "./instrument.ts";

const shown = (marker: string, value?: string, print = "print") =>
  `${print}("@@NONCE@@:${marker}"${value ? `, ${value}` : ""}, flush=True)`;

/** Splits a program in which `>>> marker` or `>>> marker = name` shows where a line must be inserted. */
function cut(marked: string): { program: string; expected: string; markers: Marker[] } {
  const lines = marked.replace(/^\n/, "").split("\n");
  const inserted = lines.filter((line) => /^\s*>>> /.test(line));
  const seen = new Set(inserted.map((line) => line.replace(/^\s*>>> | = .*/g, "")));
  return {
    program: lines.filter((line) => !inserted.includes(line)).join("\n"),
    expected: lines
      .map((line) => line.replace(/>>> ([a-z ]+?)(?: = (\w+))?$/, (_, marker, value) => shown(marker, value)))
      .join("\n"),
    markers: MARKERS.filter((marker) => seen.has(marker)),
  };
}

const cases: Record<string, string> = {
  "Appendix D.3.1": `
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.ensemble import RandomForestClassifier
import numpy as np
>>> imported packages

# Load and preprocess data
train_data = pd.read_json("input/train.json")
test_data = pd.read_json("input/test.json")
>>> loaded data

tfidf_vectorizer = TfidfVectorizer(stop_words="english", max_features=1000)
X_train_tfidf = tfidf_vectorizer.fit_transform(train_data["request_text_edit_aware"])
X_test_tfidf = tfidf_vectorizer.transform(test_data["request_text_edit_aware"])

rf_classifier = RandomForestClassifier(n_estimators=100, random_state=42)
>>> defined model

rf_classifier.fit(X_train_tfidf, train_data["requester_received_pizza"])
>>> trained model

# Predict probabilities for the test set
y_pred_proba = rf_classifier.predict_proba(X_test_tfidf)[:, 1]
>>> predicted test labels

submission = pd.DataFrame(
    {"request_id": test_data["request_id"], "requester_received_pizza": y_pred_proba}
)
submission.to_csv("./submission.csv", index=False)
`,
  "holdout that is called X_test": `
import pandas as pd; from sklearn.linear_model import Ridge
>>> imported packages
train, test = pd.read_csv("input/train.csv"), pd.read_csv("input/test.csv")
>>> loaded data
X_train, X_test, y_train, y_test = train_test_split(train[cols], train["price"])
model = Ridge().fit(X_train, y_train)
>>> defined model
>>> trained model
p = model.predict(X_test)
val_mae = mean_absolute_error(y_test, p)
>>> testing loss = val_mae
train_mae = mean_absolute_error(y_train, model.predict(X_train))
>>> training loss = train_mae
pred = model.predict(test[cols])
>>> predicted test labels
`,
  "functions and a main guard, tabs": `
import pandas as pd
>>> imported packages

def load(name):
	return pd.read_csv(f"input/{name}.csv")

def fit(train):
	model = Ridge(alpha=1.0)
	>>> defined model
	return model.fit(train[["x"]], train["y"])

def main():
	train = load("train")
	test = load("test")
	>>> loaded data
	model = fit(train)
	>>> trained model
	out = test[["id"]].copy()
	out["y"] = model.predict(test[["x"]])
	>>> predicted test labels
	out.to_csv("submission.csv", index=False)

if __name__ == "__main__":
	main()
`,
  "main guard without a function": `
import numpy as np
>>> imported packages
if __name__ == "__main__":
    train = np.loadtxt("input/train.csv", delimiter=",", skiprows=1)
    test = np.loadtxt("input/test.csv", delimiter=",", skiprows=1)
    >>> loaded data
    w = np.linalg.lstsq(train[:, :-1], train[:, -1])[0]
    >>> trained model
    pred = test @ w
    >>> predicted test labels
    np.savetxt("submission.csv", pred)
`,
  "cross validation loop": `
from sklearn.model_selection import KFold
import pandas as pd
>>> imported packages
df = pd.read_csv("input/train.csv"); df_test = pd.read_csv("input/test.csv")
>>> loaded data
pred = 0
for train_index, test_index in KFold(5).split(df):
    model = HistGradientBoostingRegressor()
    >>> defined model
    model.fit(df.iloc[train_index], y[train_index])
    >>> trained model
    oof[test_index] = model.predict(df.iloc[test_index])
    pred += model.predict(df_test) / 5
    >>> predicted test labels
score = mean_absolute_error(y, oof)
>>> testing loss = score
`,
  cross_val_score: `
model = make_pipeline(StandardScaler(), SVR())
>>> defined model
scores = cross_val_score(model, X, y)
>>> trained model
>>> testing loss = scores
`,
  "transformers are no models": `
scaler = StandardScaler()
scaler.fit(X)
enc = OneHotEncoder(); enc.fit(X)
pipe = make_pipeline(SimpleImputer(), PCA())
pipe.fit(X)
make_pipeline(CountVectorizer(), TruncatedSVD()).fit(text)
`,
  "conditional steps": `
if use_forest:
    model = RandomForestRegressor()
    >>> defined model
else:
    model = Ridge()
    >>> defined model
if os.path.exists("extra.csv"):
    extra = pd.read_csv("extra.csv")
    >>> loaded data
model.fit(X, y)
>>> trained model
`,
  "the unconditional read counts": `
train = pd.read_csv("input/train.csv")
>>> loaded data
if os.path.exists("extra.csv"):
    extra = pd.read_csv("extra.csv")
`,
  "try and except": `
try:
    import lightgbm as lgb
except ImportError:
    lgb = None
>>> imported packages
try:
    train = pd.read_csv("input/train.csv")
    >>> loaded data
except FileNotFoundError:
    train = pd.read_csv("train.csv")
    >>> loaded data
finally:
    pass
with open("log.txt", "w") as log:
    booster = lgb.train(params, dataset)
    >>> trained model
`,
  torch: `
import torch
from torch import nn
>>> imported packages

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        >>> defined model

    def forward(self, x):
        return self.layers(x)

train_df = pd.read_csv("input/train.csv")
>>> loaded data
net = Net()
>>> defined model
optimizer = torch.optim.Adam(net.parameters())
for epoch in range(10):
    net.train()
    for xb, yb in train_loader:
        loss = criterion(net(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    >>> training loss
    >>> trained model
    val_loss = criterion(net(X_val), y_val).item()
    >>> testing loss = val_loss
with torch.no_grad():
    pred = net(X_test)
    >>> predicted test labels
`,
  "while loops are left before a marker": `
model = SGDRegressor()
>>> defined model
n = 0
while n < 100000:
    model.partial_fit(X, y)
    loss = mean_squared_error(y_train, model.predict(X_train))
    n += 1
>>> training loss
>>> trained model
`,
  "one-line compound statements": `
for m in models: m.fit(X, y)
>>> trained model
if flag: df = pd.read_csv("input/train.csv")
else: df = None
class A: pass
def f(x): return x
with ctx: pred = model.predict(X_test)
>>> predicted test labels
`,
  "multi-line statements and strings that look like code": `
text = """
df = pd.read_csv("input/train.csv")
model.fit(X, y)
"""
# model.fit(X, y)
df = pd.read_csv(
    "input/train.csv",
)  # the data
>>> loaded data
model = \\
    Ridge()
>>> defined model
model.fit(X, """
a""", b=")")
>>> trained model
f = lambda: model.predict(X_test)
`,
  "no space around, semicolons, trailing comment": `
import pandas as pd;import numpy as np # tools
>>> imported packages
df=pd.read_csv("input/train.csv");te=pd.read_csv("input/test.csv");
>>> loaded data
m=LinearRegression();m.fit(df[["x"]],df.y);p=m.predict(te[["x"]])
>>> defined model
>>> trained model
>>> predicted test labels
`,
  "decorators, async, match": `
@functools.cache
def load():
    df = pd.read_csv("input/train.csv")
    >>> loaded data
    return df

async def go():
    match kind:
        case "ridge":
            model = Ridge()
            >>> defined model
        case _:
            model = Lasso()
            >>> defined model
    return model
`,
  "what the grammar does not know": `
half = 1./2. + 1.e3*x[0] + 5 .real
def batches():
    yield
    yield half
model = Ridge(100.).fit(X, y, 1.)
>>> defined model
>>> trained model
`,
  "future import and doc string": `
"""Solves it."""
from __future__ import annotations
import pandas as pd
>>> imported packages
sample = pd.read_csv("input/sample_submission.csv")
`,
  "scores in print": `
print("train R2", model.score(X_train, y_train))
>>> training loss
print(f"validation {mean_absolute_error(y, p)}")
>>> testing loss
print("MAE", mean_absolute_error(y_val, p))
>>> testing loss
r = np.sqrt(mean_squared_error(yva, p))
>>> testing loss = r
print(mean_absolute_error(a, b))
`,
  "values are plain names only": `
self.val_loss = mean_squared_error(y_val, p)
>>> testing loss
a, val_b = log_loss(y_val, p), 2
>>> testing loss
scores["val"] = log_loss(y_val, p)
>>> testing loss
val_rmse: float = np.sqrt(np.mean((p - y_val) ** 2))
>>> testing loss = val_rmse
val_rmse /= 2
loss = 0
`,
  "comments and blank lines after a suite": `
def train_model(X, y):
    model = Ridge()
    >>> defined model

    # fit it

    model.fit(X, y)
    >>> trained model
    # done

# outside
model = train_model(X, y)
`,
};

test("a marker follows each completed milestone", async (t) => {
  for (const [name, marked] of Object.entries(cases))
    await t.test(name, () => {
      const { program, expected, markers } = cut(marked);
      const result = instrument(program);
      assert.equal(result.program, expected);
      assert.deepEqual(result.markers, markers);
      assert.equal(result.instrumenter, markers.length > 0 ? "Syntax" : "None");
      assert.equal(result.verificationFailures, 0);
    });
});

const small = ["import pandas as pd", 'df = pd.read_csv("input/train.csv")', "if True:", "\tm = Ridge()"];
const smallMarked = [small[0], shown("imported packages"), small[1], shown("loaded data"), small[2], small[3]];

test("line ends, the byte order mark and the final line break are kept", async (t) => {
  const markedEnd = `\t${shown("defined model")}`;
  for (const lineBreak of ["\n", "\r\n", "\r"])
    for (const mark of ["", "\uFEFF"])
      for (const end of ["", lineBreak, lineBreak + lineBreak, `${lineBreak}# end`])
        await t.test(JSON.stringify(mark + lineBreak + end), () => {
          const result = instrument(mark + small.join(lineBreak) + end);
          assert.equal(result.program, mark + [...smallMarked, markedEnd].join(lineBreak) + end);
        });
});

test("an inserted line ends as the line before it, also with mixed line ends", () => {
  assert.equal(
    instrument('import a\r\ndf = pd.read_csv("t")\nx = 1\r\n').program,
    `import a\r\n${shown("imported packages")}\r\ndf = pd.read_csv("t")\n${shown("loaded data")}\nx = 1\r\n`,
  );
});

test("some programs are left as they are", async (t) => {
  const left: Record<string, string> = {
    empty: "",
    "a comment": "# nothing",
    "syntax error": "import pandas as pd\ndf = pd.read_csv('a'",
    "bad indentation": "import os\nif x:\nprint(1)\n",
    "uneven indentation": "import os\nif x:\n    y = 1\n  z = 2\n",
    "indented module": "  import os\n  y = 2\nx = 1\n",
    "a line that goes on into an empty one": "import os\nmodel = Ridge() \\\n\nmodel.fit(X, y)\n",
    "Python 2": "import os\nprint 1\n",
    prose: "I would use a random forest.",
    "unterminated string": 'import os\nx = """abc',
    "the placeholder": 'import os\nprint("@@NONCE@@:loaded data", flush=True)\n',
    "binary junk": "\u0000\u0001\u0002",
  };
  for (const [name, program] of Object.entries(left))
    await t.test(name, () =>
      assert.deepEqual(instrument(program), { program, markers: [], instrumenter: "None", verificationFailures: 0 }),
    );
  await t.test("the instrumenter None leaves every program", () =>
    assert.equal(instrument("import os\n", "None").program, "import os\n"),
  );
});

test("markers reach the builtin print where the program binds the name", async (t) => {
  const safe = `import os\n${shown("imported packages", undefined, '__import__("builtins").print')}\n`;
  for (const binding of [
    "def print(*a): pass",
    "print = lambda *a: None",
    "from rich import print",
    "for print in x: pass",
    "list(map(print, x))",
  ])
    await t.test(binding, () =>
      assert.ok(instrument(`import os\n${binding}\n`).program.includes(safe.split("\n")[1]!)),
    );
  await t.test("a call of print is no binding", () =>
    assert.equal(
      instrument('import os\nprint ("a")\n').program,
      `import os\n${shown("imported packages")}\nprint ("a")\n`,
    ),
  );
});

test("only an instrumented program gets the nonce", () => {
  const nonce = "0123456789abcdef0123456789abcdef";
  const instrumented = instrument("import os\n");
  assert.equal(withNonce(instrumented, nonce), `import os\nprint("${nonce}:imported packages", flush=True)\n`);
  const forging = 'import os\nprint("@@NONCE@@:trained model")\n';
  assert.equal(withNonce(instrument(forging), nonce), forging);
});

test("verification accepts inserted markers alone", async (t) => {
  const original = 'import os\nx = """\n"""\nif x:\n    y = 1\nelse:\n    y = 2';
  const good = shown("imported packages");
  const table: [string, string, Marker[] | undefined][] = [
    ["nothing inserted", original, []],
    ["a marker", original.replace("os\n", `os\n${good}\n`), ["imported packages"]],
    ["a marker twice", original.replace("os\n", `os\n${good}\n${good}\n`), ["imported packages"]],
    ["a value", `${original}\n${shown("training loss", "a.b.c")}`, ["training loss"]],
    ["at the end", `${original}\n    ${shown("trained model")}`, ["trained model"]],
    ["unknown marker", `${original}\n${shown("won")}`, undefined],
    ["a call as value", `${original}\n${shown("training loss", "f()")}`, undefined],
    ["a walrus as value", `${original}\n${shown("training loss", "(y := 3)")}`, undefined],
    ["several statements", `${original}\n${shown("training loss")}; y = 3`, undefined],
    ["another line", `${original}\ny = 3`, undefined],
    ["a comment", `${original}\n# trained`, undefined],
    ["a line less", original.replace("import os\n", ""), undefined],
    ["the last line less", original.slice(0, original.lastIndexOf("\n")), undefined],
    ["the end less", original.slice(0, original.indexOf("if x")), undefined],
    ["a changed line", original.replace("y = 1", "y = 7"), undefined],
    ["changed indentation", original.replace("    y = 2", "  y = 2"), undefined],
    ["changed line ends", original.replaceAll("\n", "\r\n"), undefined],
    ["inside a string", original.replace('"""\n', `"""\n${good}\n`), undefined],
    ["between if and else", original.replace("else:", `${good}\nelse:`), undefined],
    ["wrong indentation", original.replace("    y = 2", `    y = 2\n  ${good}`), undefined],
  ];
  for (const [name, instrumented, expected] of table)
    await t.test(name, () => assert.deepEqual(verifyInstrumented(original, instrumented), expected));
  await t.test("the original has the placeholder", () => assert.equal(verifyInstrumented(good, good), undefined));
});

test("a program takes less than 5 ms of processor time", () => {
  const program = cut(cases["Appendix D.3.1"]!).program.repeat(2);
  for (let i = 0; i < 50; i++) instrument(program);
  const before = process.cpuUsage().user;
  for (let i = 0; i < 50; i++) instrument(program);
  const milliseconds = (process.cpuUsage().user - before) / 50 / 1000;
  assert.ok(milliseconds < 5, `${milliseconds} ms`);
});
