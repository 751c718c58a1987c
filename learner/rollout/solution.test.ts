import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatSolution, parseSolution, type SolutionFault } from "./solution.ts";

const block = (code: string, language = "python") => `\`\`\`${language}\n${code}\n\`\`\``;

const accepted: [string, string, { plan: string; program: string }][] = [
  ["plan and block", `Fit a tree.\n${block("a = 1")}`, { plan: "Fit a tree.", program: "a = 1\n" }],
  ["no language", `Plan.\n${block("a = 1", "")}`, { plan: "Plan.", program: "a = 1\n" }],
  ["space before the language", `Plan.\n${block("a = 1", " py")}`, { plan: "Plan.", program: "a = 1\n" }],
  ["plan of several paragraphs", `One.\n\nTwo.\n\n${block("a")}`, { plan: "One.\n\nTwo.", program: "a\n" }],
  ["text after the block", `Plan.\n${block("a")}\nThat is all.`, { plan: "Plan.", program: "a\n" }],
  ["second block empty", `Plan.\n${block("a")}\n${block("")}`, { plan: "Plan.", program: "a\n" }],
  ["second block blank lines", `Plan.\n${block("a")}\n${block("\n  \n")}`, { plan: "Plan.", program: "a\n" }],
  ["second block a comment", `Plan.\n${block("a")}\n${block("# done")}`, { plan: "Plan.", program: "a\n" }],
  ["second block opened, empty, unclosed", `Plan.\n${block("a")}\n\`\`\``, { plan: "Plan.", program: "a\n" }],
  ["carriage returns", `Plan.\r\n\`\`\`python\r\na\r\nb\r\n\`\`\`\r\n`, { plan: "Plan.", program: "a\nb\n" }],
  ["longer fence around a short one", "Plan.\n````\na\n```\nb\n````", { plan: "Plan.", program: "a\n```\nb\n" }],
  ["indented fences", "Plan.\n   ```python\na\n   ```", { plan: "Plan.", program: "a\n" }],
  ["closing fence longer", "Plan.\n```\na\n`````", { plan: "Plan.", program: "a\n" }],
  [
    "a fence with a language does not close",
    "Plan.\n```\na\n```python\n```",
    { plan: "Plan.", program: "a\n```python\n" },
  ],
  ["inline code in the plan", `Use \`Ridge\`.\n${block("a")}`, { plan: "Use `Ridge`.", program: "a\n" }],
  ["plan in another script", `使用岭回归。\n${block("a")}`, { plan: "使用岭回归。", program: "a\n" }],
  ["indentation is kept", `Plan.\n${block("for a in b:\n    a")}`, { plan: "Plan.", program: "for a in b:\n    a\n" }],
];

const refused: [string, string, SolutionFault][] = [
  ["nothing", "", "noCodeBlock"],
  ["plan only", "Fit a tree.", "noCodeBlock"],
  ["code without fences", "import pandas as pd\nprint(1)", "noCodeBlock"],
  ["fences in one line", "Plan. ```a = 1```", "noCodeBlock"],
  ["fence deep in the line", "Plan.\n    ```\na\n    ```", "noCodeBlock"],
  ["truncated", "Plan.\n```python\na = 1\nb =", "unclosedCodeBlock"],
  ["truncated at the fence", "Plan.\n```", "unclosedCodeBlock"],
  ["closing fence too short", "Plan.\n````\na\n```", "unclosedCodeBlock"],
  ["empty block", `Plan.\n${block("")}`, "emptyCodeBlock"],
  ["comments only", `Plan.\n${block("# todo\n  # later")}`, "emptyCodeBlock"],
  ["empty first, code second", `Plan.\n${block("")}\n${block("a")}`, "emptyCodeBlock"],
  ["two programs", `Plan.\n${block("a")}\n${block("b")}`, "severalCodeBlocks"],
  ["second program truncated", `Plan.\n${block("a")}\n\`\`\`python\nb`, "severalCodeBlocks"],
  ["no plan", block("a"), "noPlan"],
  ["plan of white space", `\n  \n${block("a")}`, "noPlan"],
  ["plan of punctuation", `... -\n${block("a")}`, "noPlan"],
  ["plan after the block", `${block("a")}\nI fitted a tree.`, "noPlan"],
];

test("a solution with a plan and one program is executed", async (t) => {
  for (const [name, text, expected] of accepted) {
    await t.test(name, () => assert.deepEqual(parseSolution(text), expected));
  }
});

test("other solutions are not executed", async (t) => {
  for (const [name, text, fault] of refused) {
    await t.test(name, () => assert.deepEqual(parseSolution(text), { fault }));
  }
});

test("a formatted text is read back unchanged", () => {
  const line = fc.string({ unit: "grapheme-ascii" }).map((text) => text.replaceAll("`", "'"));
  fc.assert(
    fc.property(fc.array(line), (code) => {
      const program = ["x = 1", ...code, "y = 2"].join("\n");
      assert.deepEqual(parseSolution(formatSolution("A plan.", program)), { plan: "A plan.", program: `${program}\n` });
    }),
  );
});
