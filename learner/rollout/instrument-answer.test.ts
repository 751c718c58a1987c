import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { verifyInstrumented } from "./instrument.ts";
import { type AnswerFault, readAnswer } from "./instrument-answer.ts";

const program = `import pandas as pd
from sklearn.linear_model import Ridge

train = pd.read_csv("input/train.csv")

model = Ridge()
history = []
for epoch in range(3):
    model.fit(train[["a"]], train["y"])
    loss = abs(model.predict(train[["a"]]) - train["y"]).mean()
    history.append(loss)


def predict(data, name="test"):
    """Predictions."""
    scale = 2.0
    return model.predict(data) / scale


print("done")
`;

/** Returns the program with lines inserted before the lines that begin with a key. */
function answered(insertions: Record<string, string>, of = program): string {
  const lines = of.replace(/\n$/, "").split("\n");
  for (const key of Object.keys(insertions)) assert.ok(key === "" || lines.some((line) => line.startsWith(key)), key);
  return lines
    .flatMap((line) => [
      ...Object.entries(insertions).flatMap(([key, text]) => (key !== "" && line.startsWith(key) ? [text] : [])),
      line,
    ])
    .concat(insertions[""] ?? [])
    .join("\n");
}

const block = (code: string, before = "Here it is:\n\n") => `${before}\`\`\`python\n${code}\n\`\`\``;
const shown = (marker: string, ...names: string[]) =>
  `print(${[`"@@NONCE@@:${marker}"`, ...names, "flush=True"].join(", ")})`;

/** Answers whose one inserted line becomes the expected line. */
const good: Record<string, [answer: string, inserted: string]> = {
  "as the prompt asks": [answered({ "model = ": 'print("loaded data")' }), shown("loaded data")],
  "single quotes": [answered({ "model = ": "print('loaded data')" }), shown("loaded data")],
  "a full stop": [answered({ "model = ": 'print("loaded data.")' }), shown("loaded data")],
  flushed: [answered({ "model = ": 'print("loaded data", flush=True)' }), shown("loaded data")],
  "a semicolon and spaces": [answered({ "model = ": 'print( "loaded data" ) ;  ' }), shown("loaded data")],
  "an f-string of nothing": [answered({ "model = ": 'print(f"loaded data")' }), shown("loaded data")],
  "a loss in the loop": [
    answered({ "    history.append": '    print("training loss:", loss)' }),
    `    ${shown("training loss", "loss")}`,
  ],
  "a loss in an f-string": [
    answered({ "    history.append": '    print(f"training loss: {loss:.4f}")' }),
    `    ${shown("training loss", "loss")}`,
  ],
  "two values in an f-string": [
    answered({ "    history.append": '    print(f"training loss: {loss}, {epoch}")' }),
    `    ${shown("training loss", "loss", "epoch")}`,
  ],
  "a loss after the loop": [
    answered({ "def predict": 'print("training loss:", loss)' }),
    shown("training loss", "loss"),
  ],
  "an attribute that the program reads": [
    answered(
      { "print(": 'print("testing loss:", model.loss_)' },
      `${program}x = model.loss_\n`.replace('print("done")\nx = model.loss_', 'x = model.loss_\nprint("done")'),
    ),
    shown("testing loss", "model.loss_"),
  ],
  "a parameter": [
    answered({ "    scale = ": '    print("predicted test labels", name)' }),
    `    ${shown("predicted test labels", "name")}`,
  ],
  "a name of the module inside a function": [
    answered({ "    scale = ": '    print("predicted test labels", loss)' }),
    `    ${shown("predicted test labels", "loss")}`,
  ],
  "at the end": [answered({ "": 'print("predicted test labels")' }), shown("predicted test labels")],
  "blank lines left out": [
    answered({ "model = ": 'print("loaded data")' }).replace(/\n\n+/g, "\n"),
    shown("loaded data"),
  ],
  "blank lines put in, spaces at line ends": [
    answered({ "model = ": '\nprint("loaded data")\n' }).replaceAll("\n", "  \n"),
    shown("loaded data"),
  ],
};

for (const [name, [answer, inserted]] of Object.entries(good))
  test(`the policy's answer is taken: ${name}`, () => {
    const of = answer.includes("model.loss_")
      ? program.replace('print("done")', 'x = model.loss_\nprint("done")')
      : program;
    const read = readAnswer(of, block(answer));
    assert.ok("program" in read, `refused: ${"fault" in read && read.fault}`);
    const lines = read.program.split("\n");
    assert.deepEqual(
      lines.filter((line) => line.includes("@@NONCE@@")),
      [inserted],
    );
    assert.equal(lines.filter((line) => line !== inserted).join("\n"), of);
    assert.deepEqual(verifyInstrumented(of, read.program), read.markers);
  });

/** A marker that prints x, and whether the program with it is accepted. `>` shows the marker's place. */
const BOUND: Record<string, [taken: boolean, program: string]> = {
  "in the branch that binds it": [true, "if a:\n    x = 1\n    >\n"],
  "after a branch": [false, "if a:\n    x = 1\n>\n"],
  "in the other branch": [false, "if a:\n    x = 1\nelse:\n    >\n    pass\n"],
  "after branches that all bind it": [true, "if a:\n    x = 1\nelif b:\n    x = 2\nelse:\n    x = 3\n>\n"],
  "after branches of which one does not": [false, "if a:\n    x = 1\nelif b:\n    pass\nelse:\n    x = 3\n>\n"],
  "after a loop over what may be empty": [false, "for i in rows:\n    x = 1\n>\n"],
  "after a loop over a range": [true, "for i in range(10):\n    x = 1\n>\n"],
  "after a loop over no range": [false, "for i in range(0):\n    x = 1\n>\n"],
  "after a loop that may go on before": [false, "for i in range(3):\n    if a: continue\n    x = 1\n>\n"],
  "the loop's own variable in it": [true, "for x in rows:\n    >\n    pass\n"],
  "the loop's own variable after it": [false, "for x in rows:\n    pass\n>\n"],
  "in a handler": [false, "try:\n    x = f()\nexcept E:\n    >\n    pass\n"],
  "after a handler": [false, "try:\n    x = f()\nexcept E:\n    pass\n>\n"],
  "after a with": [true, "with no_grad():\n    x = 1\n>\n"],
  "after a with that suppresses": [false, "with suppress(E):\n    x = f()\n>\n"],
  "after del": [false, "x = 1\ndel x\n>\n"],
  "after a branch with del": [false, "x = 1\nif a:\n    del x\n>\n"],
  "bound again after del": [true, "x = 1\ndel x\nx = 2\n>\n"],
  "in a function of a module that deletes it": [false, "x = 1\ndef f():\n    >\n    return 1\nf()\ndel x\nf()\n"],
  "of the module, in a function": [true, "x = 1\ndef f():\n    >\n    return 1\n"],
  "of the module, in a function that binds it below": [false, "x = 1\ndef f():\n    >\n    x = 2\n"],
  "of the module, in a function that imports it below": [false, "x = 1\ndef f():\n    >\n    import x\n"],
  "of the module, in a function that says global": [true, "x = 1\ndef f():\n    global x\n    >\n    x = 2\n"],
  "of a class, in it": [true, "class A:\n    x = 1\n    >\n"],
  "of a class, in a method": [false, "class A:\n    x = 1\n    def f(self):\n        >\n        return 1\n"],
  "of the module, in a method": [true, "x = 1\nclass A:\n    def f(self):\n        >\n        return 1\n"],
};
for (const [name, [taken, marked]] of Object.entries(BOUND))
  test(`a printed value that is ${taken ? "bound is taken" : "not certainly bound is refused"}: ${name}`, () => {
    const of = marked.replace(/^ *>\n/m, "");
    const read = readAnswer(of, block(marked.replace(">", 'print("training loss:", x)')));
    assert.equal("fault" in read ? read.fault : "taken", taken ? "taken" : "unboundValue");
  });

const marker = { "model = ": 'print("loaded data")' };
const bad: Record<string, [fault: AnswerFault, answer: string, of?: string]> = {
  "no code block": ["noCodeBlock", answered(marker)],
  "a block that is not closed": ["noCodeBlock", `\`\`\`python\n${answered(marker)}`],
  nothing: ["noCodeBlock", ""],
  "no markers": ["noMarkers", block(answered({}))],
  "half of the program": ["changed", block(answered(marker).slice(0, 300))],
  "the end left out": ["changed", block(answered(marker).replace(/\nprint\("done"\)$/, ""))],
  "a line left out": ["changed", block(answered(marker).replace("history = []\n", ""))],
  "a line changed": ["changed", block(answered(marker).replace("Ridge()", "Ridge(alpha=2)"))],
  "a line moved": [
    "changed",
    block(answered(marker).replace("history = []\n", "").replace("model = ", "history = []\nmodel = ")),
  ],
  "indentation changed": ["changed", block(answered(marker).replace("    scale", "     scale"))],
  "tabs for spaces": ["changed", block(answered(marker).replaceAll("    ", "\t"))],
  "a comment put in": ["changed", block(answered({ "model = ": '# the data\nprint("loaded data")' }))],
  "a comment left out": ["changed", block(answered(marker)), `# a program\n${program}`],
  "a docstring changed": ["changed", block(answered(marker).replace("Predictions.", "The predictions."))],
  "another print put in": ["changed", block(answered({ "model = ": 'print("shape", train.shape)' }))],
  "code put in": ["changed", block(answered({ "model = ": "train = train.dropna()" }))],
  "code behind a print": ["changed", block(answered({ "model = ": 'print("loaded data"); train = None' }))],
  "a print in an if": ["changed", block(answered({ "model = ": 'if True: print("loaded data")' }))],
  "a marker with other words": ["changed", block(answered({ "model = ": 'print("we loaded data")' }))],
  "a marker of its own": ["changed", block(answered({ "model = ": 'print("submission written")' }))],
  "code in place of the answer": ["changed", block("import os\nos.remove('x')")],
  "a call": ["expression", block(answered({ "    history.append": '    print("training loss:", loss.item())' }))],
  "a call in an f-string": [
    "expression",
    block(answered({ "    history.append": '    print(f"training loss: {loss.item():.3f}")' })),
  ],
  "a sum": ["expression", block(answered({ "    history.append": '    print("training loss:", loss + 1)' }))],
  "an element": ["expression", block(answered({ "def predict": 'print("training loss:", history[0])' }))],
  "an assignment": [
    "expression",
    block(answered({ "    history.append": '    print("training loss:", (loss := 0))' })),
  ],
  "another file": ["expression", block(answered({ "model = ": 'print("loaded data", file=open("x", "w"))' }))],
  "a nested format": [
    "expression",
    block(answered({ "    history.append": '    print(f"training loss: {loss:{epoch}}")' })),
  ],
  "a second call behind": ["expression", block(answered({ "model = ": 'print("loaded data") or print("x")' }))],
  "more text": ["expression", block(answered({ "model = ": 'print("loaded data of the house prices")' }))],
  "a name that nothing binds": [
    "unboundValue",
    block(answered({ "def predict": 'print("testing loss:", test_loss)' })),
  ],
  "a name that is bound below": [
    "unboundValue",
    block(answered({ "    model.fit": '    print("training loss:", loss)' })),
  ],
  "a name of a function, outside it": ["unboundValue", block(answered({ "print(": 'print("testing loss:", scale)' }))],
  "a parameter, outside it": ["unboundValue", block(answered({ "print(": 'print("predicted test labels", data)' }))],
  "an attribute that the program never reads": [
    "unboundValue",
    block(answered({ "def predict": 'print("training loss:", model.loss_)' })),
  ],
  "a method that is called": ["unboundValue", block(answered({ "print(": 'print("training loss:", model.predict)' }))],
  "a name of a comment": [
    "unboundValue",
    block(`# test_loss\n${answered({ "def predict": 'print("testing loss:", test_loss)' })}`),
    `# test_loss\n${program}`,
  ],
  "dedented into a suite": ["misplaced", block(answered({ "    loss = ": 'print("trained model")' }))],
  "too deep": ["misplaced", block(answered({ "model = ": '  print("loaded data")' }))],
  "inside a call": ["misplaced", block('f(\nprint("loaded data")\n1)'), "f(\n1)\n"],
  "inside a string": ["misplaced", block('x = """\nprint("loaded data")\n"""'), 'x = """\n"""\n'],
  "behind a backslash": ["misplaced", block('x = 1 + \\\nprint("loaded data")\n2'), "x = 1 + \\\n2\n"],
  "between if and else": [
    "misplaced",
    block('if a:\n    b()\nprint("loaded data")\nelse:\n    c()'),
    "if a:\n    b()\nelse:\n    c()\n",
  ],
  "between a decorator and its function": [
    "misplaced",
    block('@d\nprint("loaded data")\ndef f():\n    pass'),
    "@d\ndef f():\n    pass\n",
  ],
  "before an import from __future__": [
    "misplaced",
    block('print("imported packages")\nfrom __future__ import annotations\nimport os'),
    "from __future__ import annotations\nimport os\n",
  ],
  "for a program that Python does not parse": ["misplaced", block('x = (\nprint("loaded data")'), "x = (\n"],
};

for (const [name, [fault, answer, of]] of Object.entries(bad))
  test(`the policy's answer is refused: ${name}`, () => assert.deepEqual(readAnswer(of ?? program, answer), { fault }));

test("the program's own prints are no markers", () => {
  const own = 'x = 1\nprint("loaded data")\n';
  assert.deepEqual(readAnswer(own, block(own)), { fault: "noMarkers" });
  const read = readAnswer(own, block(`${own}print("loaded data")`));
  assert.ok("program" in read);
  assert.equal(read.program, `${own}${shown("loaded data")}\n`);
});

test("line breaks are kept, and the last one may be missing", () => {
  const read = readAnswer("x = 1\r\ny = 2\r\n", block('x = 1\nprint("loaded data")\ny = 2'));
  assert.ok("program" in read);
  assert.equal(read.program, `x = 1\r\n${shown("loaded data")}\r\ny = 2\r\n`);
  const last = readAnswer("x = 1", block('x = 1\nprint("loaded data")'));
  assert.ok("program" in last);
  assert.equal(last.program, `x = 1\n${shown("loaded data")}\n`);
});

test("a program that binds the name print gets markers that call the builtin print", () => {
  const own = "print = None\n";
  const read = readAnswer(own, block(`${own}print("loaded data")`));
  assert.ok("program" in read);
  assert.equal(read.program, `${own}__import__("builtins").${shown("loaded data")}\n`);
});

test("the executed text is the program with markers, for any answer of the model", () => {
  const line = fc.oneof(
    fc.constantFrom(...program.split("\n")),
    fc.constantFrom(
      'print("loaded data")',
      '    print("training loss:", loss)',
      "",
      "  ",
      "```",
      "```python",
      "import os",
    ),
    fc.string(),
  );
  const edits = fc.array(fc.record({ at: fc.nat(22), remove: fc.nat(1), put: fc.array(line, { maxLength: 2 }) }), {
    maxLength: 4,
  });
  fc.assert(
    fc.property(edits, (changes) => {
      const lines = program.split("\n");
      for (const { at, remove, put } of changes) lines.splice(at, remove, ...put);
      const read = readAnswer(program, block(lines.join("\n")));
      if ("fault" in read) return;
      assert.deepEqual(verifyInstrumented(program, read.program), read.markers);
      assert.ok(read.markers.length > 0);
    }),
    { numRuns: 300 },
  );
});
