import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import fc from "fast-check";
import { instrument, verifyInstrumented } from "./instrument.ts";

/**
 * Random programs from a small grammar, judged by Python itself: both texts parse, and without the inserted prints the two syntax trees are
 * the same. One Python process handles all of them.
 */
const judge = `
import ast, json, sys, warnings
warnings.simplefilter("ignore")
class WithoutMarkers(ast.NodeTransformer):
    def visit_Expr(self, node):
        call = node.value
        if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Constant):
            if str(call.args[0].value).startswith("@@NONCE@@:"):
                return None
        return node
for line in sys.stdin:
    original, instrumented = json.loads(line)
    try:
        trees = ast.parse(original), WithoutMarkers().visit(ast.parse(instrumented))
        print("same" if ast.dump(trees[0]) == ast.dump(trees[1]) else "different")
    except SyntaxError as error:
        print(error)
`;

const simple = fc.constantFrom(
  "import pandas as pd",
  "from sklearn.linear_model import Ridge",
  'train = pd.read_csv("input/train.csv")',
  'test = pd.read_csv(\n"input/test.csv", # both\n)',
  "model = Ridge(alpha=1.)",
  "model = Ridge().fit(X, y)",
  'model.fit(train[["x"]], """\n y""")',
  "scaler.fit(X)",
  "pred = model.predict(test)",
  "pred = test @ w",
  "val_mae = mean_absolute_error(y_val, p)",
  "train_loss = \\\n  log_loss(y_train, p)",
  "loss = criterion(model(xb), yb); loss.backward()",
  "optimizer.step();",
  'print("validation", rmse(y_val, p))',
  "f = lambda x: model.fit(x)",
  'text = """\nmodel.fit(X, y)\n"""',
  "# model.fit(X, y)\npass",
  "\npass",
  "pass  # done",
  "return model.predict(test)",
  "x: float = 1.5 + 2.",
  "yield",
  "print = None",
);

/** Generates lines of statements; suites are indented by `unit`. */
const { block } = fc.letrec<{ block: string[]; statement: string[] }>((tie) => ({
  block: fc.array(tie("statement"), { minLength: 1, maxLength: 4 }).map((statements) => statements.flat()),
  statement: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    { arbitrary: simple.map((text) => [text]), weight: 5 },
    {
      arbitrary: fc
        .tuple(
          fc.constantFrom(
            ["for a, b in c:"],
            ["for a in b:", "else:"],
            ["while d:"],
            ["if e:"],
            ["if e:", "elif f:", "else:"],
            ["try:", "except ValueError as error:", "else:", "finally:"],
            ["try:", "except ImportError:"],
            ["with open(g) as h:"],
            ["def load(a, b=1):"],
            ["async def fit(*a):"],
            ["@decorator\ndef predict(a):"],
            ["class Net(nn.Module):"],
            ['if __name__ == "__main__":'],
          ),
          fc.array(tie("block"), { minLength: 4, maxLength: 4 }),
          simple.filter((text) => !/[\n#]/.test(text)),
          fc.boolean(),
        )
        .map(([headers, blocks, only, inline]) =>
          inline
            ? headers.map((header) => `${header} ${only}`)
            : headers.flatMap((header, i) => [header, ...blocks[i]!.map((line) => `»${line}`)]),
        ),
      weight: 2,
    },
  ),
}));

const program = fc
  .tuple(block, fc.constantFrom("    ", "\t", "  "), fc.constantFrom("\n", "\r\n"), fc.boolean(), fc.boolean())
  .map(([lines, unit, lineBreak, mark, end]) => {
    // Continuation lines of a statement keep their own indentation, except in suites.
    const text = lines.map((line) => indent(line, unit)).join("\n") + (end ? "\n" : "");
    return (mark ? "\uFEFF" : "") + text.replaceAll("\n", lineBreak);
  });

function indent(line: string, unit: string): string {
  const depth = /^»*/.exec(line)![0].length;
  const text = line.slice(depth).replaceAll("»", "");
  const starts = /^(#|\n|@)/.test(text);
  return text
    .split("\n")
    .map((part, i) => (i === 0 || starts ? unit.repeat(depth) : "") + part)
    .join("\n");
}

test("Python parses an instrumented program to the same program with markers", () => {
  const programs = fc.sample(program, { numRuns: 700, seed: 7 });
  const instrumented = programs.map((text) => {
    const result = instrument(text);
    assert.equal(result.verificationFailures, 0, text);
    if (result.instrumenter === "Syntax") assert.deepEqual(verifyInstrumented(text, result.program), result.markers);
    return result;
  });
  const input = programs.map((text, i) =>
    JSON.stringify([text.replace("\uFEFF", ""), instrumented[i]!.program.replace("\uFEFF", "")]),
  );
  const python = spawnSync("python3", ["-c", judge], { input: input.join("\n"), encoding: "utf8" });
  assert.equal(python.status, 0, python.stderr);
  const verdicts = python.stdout.trimEnd().split("\n");
  assert.equal(verdicts.length, programs.length);
  for (const [i, verdict] of verdicts.entries())
    assert.equal(verdict, "same", `${programs[i]}\n--- became ---\n${instrumented[i]!.program}`);
  const inserted = instrumented.filter(({ markers }) => markers.length > 0).length;
  assert.ok(inserted > programs.length / 2, `markers in ${inserted} of ${programs.length} programs`);
});
