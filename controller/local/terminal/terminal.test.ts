import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { messages, type StatusMessage, type StatusReceived } from "../../../proto/service.ts";
import {
  comparison,
  type IterationLine,
  iterationHeader,
  iterationRow,
  iterationRows,
  progressText,
  runNotes,
  Terminal,
  taskRows,
} from "./terminal.ts";

const line: IterationLine = {
  lineage: 1,
  iteration: 3,
  validFraction: 0.59375,
  meanScore: 512.3149,
  bestScore: 301.2,
  meanDurationSeconds: 1.324,
  ...{ launchedMeanDurationSeconds: 1.401, trainedMeanDurationSeconds: 1.324, kl: 0.00123, seconds: 21.42 },
  ...{ meanNormalizedScore: 0.6914, samples: 32 },
};

describe("rows", () => {
  test("line up with the header", () => {
    assert.equal(
      iterationHeader(120),
      "iteration   valid  mean score  0 to 1  best score  duration        KL  launched   trained      took",
    );
    assert.equal(
      iterationRow(line, 120),
      "        3   59.4%      512.31   0.691      301.20    1.32 s   0.00123    1.40 s    1.32 s   21.42 s",
    );
  });
  const figures: [name: string, change: Partial<IterationLine>, expected: RegExp][] = [
    [
      "no valid program",
      { validFraction: 0, meanScore: null, bestScore: null, meanNormalizedScore: null },
      / 0\.0% {11}- {7}- {11}- /,
    ],
    ["nothing was executed", { meanDurationSeconds: null, launchedMeanDurationSeconds: null }, / - .* - /],
    ["all valid", { validFraction: 1 }, / 100\.0% /],
    ["small scores", { meanScore: 0.48372, bestScore: 0.5 }, / 0\.48372 {3}0\.691 {5}0\.50000 /],
    ["negative scores", { meanScore: -0.0123456 }, / -0\.012346 /],
    ["large scores", { meanScore: 1234567.8 }, / 1234568 /],
    ["huge scores", { meanScore: 1.5e12 }, / 1\.50e\+12 /],
    ["no KL yet", { kl: 0 }, / 0 /],
    ["tiny KL", { kl: 1.23e-7 }, / 1\.23e-7 /],
    ["long iterations", { seconds: 12345.6 }, / 12346 s$/],
  ];
  for (const [name, change, expected] of figures)
    test(name, () => {
      const row = iterationRow({ ...line, ...change }, 120);
      assert.match(row, expected);
      assert.equal(row.length, iterationHeader(120).length);
    });
  test("A row has its flagged submissions, or a line below has them if the row is full", () => {
    const flagged = { ...line, flagged: 3 };
    assert.deepEqual(iterationRows(flagged, 120), [`${iterationRow(line, 120)}  3 flagged`]);
    assert.deepEqual(iterationRows({ ...line, flagged: 0 }, 120), [iterationRow(line, 120)]);
    assert.deepEqual(iterationRows({ ...line, noSignal: true }, 160), [
      `${iterationRow(line, 160)}  all rewards alike: nothing to learn from`,
    ]);
    assert.deepEqual(iterationRows(line, 120), [iterationRow(line, 120)]);
    const full = iterationRow(line, 120).length;
    const clamped = { ...line, clampedRewards: 4, mostlyClamped: false };
    assert.deepEqual(iterationRows(clamped, 160), [`${iterationRow(line, 160)}  4 of 19 valid rewards at rewardFloor`]);
    assert.deepEqual(iterationRows({ ...clamped, clampedRewards: 19, mostlyClamped: true }, 120), [
      iterationRow(line, 120),
      "19 of 19 valid rewards at rewardFloor: give the grader a rewardRange".padStart(iterationRow(line, 120).length),
    ]);
    assert.deepEqual(iterationRows(flagged, full), [iterationRow(line, full), "3 flagged".padStart(full)]);
    assert.deepEqual(iterationRows(flagged, 9), ["        3", "3 flagged"]);
  });
  test("A row has the share of cut responses if there is room", () => {
    const cut = { ...line, truncatedFraction: 0.125 };
    const row = iterationRow(line, 120);
    assert.deepEqual(iterationRows(cut, 120), [`${row}  12.5% cut`]);
    assert.deepEqual(iterationRows({ ...cut, flagged: 3 }, 140), [`${iterationRow(line, 140)}  3 flagged, 12.5% cut`]);
    assert.deepEqual(iterationRows(cut, row.length), [row]);
    for (const truncatedFraction of [0, null])
      assert.deepEqual(iterationRows({ ...line, truncatedFraction }, 120), [row]);
  });
  test("Each of several tasks has a row below, in the same columns; a single task has none", () => {
    const task = { validFraction: 0.5, meanScore: 600, bestScore: 301.2, meanNormalizedScore: 0.25 };
    const tasks = { diamonds: task, wage: { ...task, meanScore: null } };
    const row = iterationRow(line, 120);
    const rows = taskRows({ ...line, tasks }, 120);
    assert.equal(rows[0]!.indexOf("600.00") + 6, row.indexOf("512.31") + 6);
    assert.match(rows[0]!, /^ +50\.0% +600\.00 +0\.250 +301\.20 +- {2}diamonds$/);
    assert.match(rows[1]!, /^ +50\.0% +- +0\.250 +301\.20 +- {2}wage$/);
    assert.equal(taskRows({ ...line, tasks }, 30)[0]!.length, 30);
    assert.deepEqual(taskRows({ ...line, tasks: { diamonds: task } }, 120), []);
  });
  test("A note reports log-probs that do not agree", () => {
    const [row] = iterationRows({ ...line, importanceDeviates: true }, 160);
    assert.equal(row, `${iterationRow(line, 160)}  sampling and training disagree on probabilities`);
  });
  test("A note reports generators that were not used", () => {
    const generation = { faults: { lost: 1, oldVersion: 0, logProbs: 2 }, movedRows: 5 };
    const [row] = iterationRows({ ...line, generation }, 200);
    assert.match(row!, / {2}1 generator lost, 2 generators with other log-probs, 5 rows moved$/);
  });

  test("A narrow terminal gets fewer columns, never a broken line", () => {
    for (let width = 10; width < 130; width++) {
      assert.ok(iterationRow(line, width).length <= width, `${width}`);
      assert.equal(iterationRow(line, width).length, iterationHeader(width).length);
    }
    assert.equal(iterationHeader(30), "iteration   valid  mean score");
    assert.equal(iterationHeader(5), "iteration");
  });
});

describe("comparison", () => {
  const before = {
    ...{ samples: 32, validFraction: 0.5, meanScore: 500, bestScore: 300, meanDurationSeconds: 1 },
    meanNormalizedScore: 0.706,
  };
  test("It has columns for both evaluations", () => {
    assert.deepEqual(comparison(before, { ...before, validFraction: 0.9375, meanScore: 333.3333 }, "MAE"), [
      "                    before   after",
      "valid programs       50.0%   93.8%",
      "mean MAE            500.00  333.33",
      "mean score, 0 to 1   0.706   0.706",
      "best MAE            300.00  300.00",
      "mean duration       1.00 s  1.00 s",
      "samples                 32      32",
    ]);
  });
  test("It has a column for one evaluation", () =>
    assert.match(comparison(undefined, before, "R2")[1]!, /^valid programs +- +50\.0%$/));
  test("It is empty without evaluations", () => assert.deepEqual(comparison(undefined, undefined, "R2"), []));
});

describe("notes of a run", () => {
  const engine = { generating: 41, updating: 37, idleActors: 15, idlePrograms: 7, idleStaleness: 0, idleOther: 0 };
  test("One note has the engine's shares over all iterations that report them, and why it idled", () =>
    assert.deepEqual(runNotes([line, { ...line, engineSeconds: engine }, { ...line, engineSeconds: engine }]), [
      "Engine: 41% generating, 37% updating, 22% idle (executions waited for an actor: raise actors.max or actors.slots)",
    ]));
  test("One note has the number of cut responses, over all samples and in the last iteration", () =>
    assert.deepEqual(
      runNotes([
        { ...line, samples: 30, truncatedFraction: 0.4 },
        { ...line, truncatedFraction: null },
        { ...line, samples: 10, truncatedFraction: 0 },
      ]),
      ["Responses cut at model.maxResponseTokens: 30.0%, 0.0% in the last iteration"],
    ));
  test("One note explains the word flagged, with the number of all rows", () => {
    assert.deepEqual(runNotes([{ ...line, flagged: 1 }]), [
      "Flagged: 1 valid submission looks as if no model had made it, such as a constant prediction; the report has the reasons",
    ]);
    assert.deepEqual(runNotes([{ ...line, flagged: 1 }, line, { ...line, flagged: 2 }]), [
      "Flagged: 3 valid submissions look as if no model had made them, such as a constant prediction; the report has the reasons",
    ]);
  });
  test("There is no note about unknown facts, or about events that did not happen", () => {
    assert.deepEqual(runNotes([line, { ...line, truncatedFraction: null }, { ...line, truncatedFraction: 0 }]), []);
    assert.deepEqual(runNotes([]), []);
  });
});

describe("progress", () => {
  const { Phase } = messages;
  const cases: [status: StatusMessage, expected: string][] = [
    [{ phase: Phase.STARTING }, "starting"],
    [
      { phase: Phase.GENERATING, iteration: 1, iterations: 12, phaseDone: 3, phaseTotal: 40 },
      "iteration 1/12 · writing solutions 3/40",
    ],
    [
      {
        phase: Phase.EXECUTING,
        iteration: 2,
        iterations: 12,
        phaseDone: 3,
        phaseTotal: 32,
        executions: { queued: 5, running: 1 },
        actors: [{ connected: true }, { connected: false }],
      },
      "iteration 2/12 · executing programs 3/32 · 5 queued, 1 running · 1 of 2 actors",
    ],
    [
      { phase: Phase.TRAINING, iteration: 2, iterations: 12, message: "one step skipped" },
      "iteration 2/12 · training · one step skipped",
    ],
    [
      { phase: Phase.FINAL_EVALUATION, iteration: 12, iterations: 12, phaseDone: 1, phaseTotal: 8 },
      "evaluating the policy 1/8",
    ],
    [
      { phase: Phase.WARMING_UP, iteration: 1, iterations: 12, phaseDone: 3, phaseTotal: 20 },
      "learning from given answers 3/20",
    ],
  ];
  for (const [status, expected] of cases)
    test(expected, () => {
      const received = messages.Status.decode(messages.Status.encode(status).finish()) as StatusReceived;
      assert.equal(progressText(received), expected);
    });
});

describe("Terminal", () => {
  const record = (isTTY: boolean, env: NodeJS.ProcessEnv = {}, columns = 60) => {
    let written = "";
    const screen = { write: (text: string) => (written += text), isTTY, columns };
    return { terminal: new Terminal(screen, env), written: () => written };
  };
  test("It writes plain rows into a file or pipe", () => {
    const { terminal, written } = record(false, { COLUMNS: "120" });
    terminal.progress("working");
    terminal.iteration(line);
    terminal.progress("working on");
    terminal.iteration({ ...line, iteration: 4 });
    terminal.clear();
    assert.equal(written().includes("\u001b"), false);
    assert.deepEqual(
      written()
        .split("\n")
        .map((row) => row.trim().split(" ")[0]),
      ["iteration", "3", "4", ""],
    );
  });
  test("Without a terminal it says once a minute what goes on", () => {
    let written = "";
    let now = 0;
    const terminal = new Terminal({ write: (text: string) => (written += text) }, {}, () => now);
    const at = (seconds: number, text: string) => {
      now = seconds * 1000;
      terminal.progress(text);
    };
    at(59, "one");
    at(60, "two");
    at(119, "three");
    terminal.line("a row");
    at(178, "four");
    at(179, "five");
    assert.equal(written, "two\na row\nfive\n");
  });
  test("It warns once when two iterations in a row had nothing to learn from", () => {
    const { terminal, written } = record(false, { COLUMNS: "120" });
    for (const noSignalIterations of [0, 1, 2, 3])
      terminal.iteration({ ...line, validFraction: 0, noSignalIterations });
    const warnings = written()
      .split("\n")
      .filter((row) => row.startsWith("Warning: "));
    assert.equal(warnings.length, 1);
    assert.match(
      warnings[0]!,
      /^Warning: 2 iterations in a row had nothing to learn from.*spec\.warmStart.*easier task\.$/,
    );
  });
  test("rewrites the live line in place, and clears it before a row", () => {
    const { terminal, written } = record(true);
    terminal.progress("one");
    terminal.progress("one");
    terminal.line("row");
    assert.equal(written(), "\r\u001b[K\u001b[2mone\u001b[0m\r\u001b[Krow\n");
  });
  test("It removes escape sequences from messages", () => {
    const { terminal, written } = record(true, { NO_COLOR: "1" });
    terminal.progress("\u001b]52;c;eA\u0007\nx");
    terminal.line("\u009b2Jrow");
    assert.equal(written(), "\r\u001b[K␛]52;c;eA␇ x\r\u001b[K\ufffd2Jrow\n");
  });
  test("never wraps the live line", () => {
    const { terminal, written } = record(true, { NO_COLOR: "1" });
    terminal.progress("x".repeat(200));
    assert.equal(written(), `\r\u001b[K${"x".repeat(58)}…`);
  });
  test("keeps the live line whole in a terminal that states no width", () => {
    const { terminal, written } = record(true, { NO_COLOR: "1" }, 0);
    terminal.progress("stopping the actors");
    assert.equal(written(), "\r\u001b[Kstopping the actors");
  });
  test("respects NO_COLOR and COLUMNS", () => {
    const { terminal, written } = record(true, { NO_COLOR: "1", COLUMNS: "30" });
    terminal.iteration(line);
    assert.equal(written(), `${iterationHeader(30)}\n${iterationRow(line, 30)}\n`);
  });
});
