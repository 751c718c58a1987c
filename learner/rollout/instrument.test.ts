import assert from "node:assert/strict";
import { test } from "node:test";
import type { Marker } from "../../proto/markers.ts";
import { instrument, verifyInstrumented, withNonce } from "./instrument.ts";

const shown = (marker: string, value?: string, print = "print") =>
  `${print}("@@NONCE@@:${marker}"${value ? `, ${value}` : ""}, flush=True)`;

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
