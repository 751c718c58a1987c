import assert from "node:assert/strict";
import { test } from "node:test";
import { change, count, duration, number, percent, span, time } from "../metrics/format.ts";
import type { IterationMetrics } from "../metrics/iteration.ts";
import { clampedSentence } from "./clamped.ts";
import { addedHistogram, durationSentence } from "./durations.ts";
import { engineSentence } from "./engine.ts";
import { guardSentence, reachSentence } from "./guards.ts";
import { html, terminalText } from "./html.ts";
import { debuggingSentence, improvementSentence } from "./improvements.ts";
import { gapSentence } from "./private-score.ts";
import { highlightPython } from "./python.ts";

const formats: [shown: string, expected: string][] = [
  [number(null), "–"],
  [number(Number.NaN), "–"],
  [number(0), "0.000"],
  [number(280), "280"],
  [number(280.25), "280.3"],
  [number(-1.5), "−1.500"],
  [number(0.00002), "2.0e−5"],
  [number(1234567), "1,234,567"],
  [count(1234), "1,234"],
  [percent(0), "0 %"],
  [percent(0.051), "5.1 %"],
  [percent(0.996), "100 %"],
  [percent(undefined), "–"],
  [duration(0.0123), "12 ms"],
  [duration(1.234), "1.23 s"],
  [duration(12.34), "12.3 s"],
  [duration(75), "1 min 15 s"],
  [span(59.6), "1 min 0 s"],
  [span(7260), "2 h 1 min"],
  [span(90_000), "1 d 1 h"],
  [change(1, 3, number), "+2.000"],
  [change(3, 1, number), "−2.000"],
  [change(0.5, 0.9, percent), "+40 %"],
  [change(1, 1, number), "±0"],
  [change(null, 1, number), "–"],
  [time("2026-01-02T03:04:05.000Z"), "2026-01-02 03:04 UTC"],
];

formats.forEach(([shown, expected], index) => {
  test(`a value is formatted, case ${index}: ${expected}`, () => assert.equal(shown, expected));
});

const terminals: [name: string, text: string, shown: string][] = [
  ["colours go", "\u001b[1;31mred\u001b[0m", "red"],
  ["titles and links go", "\u001b]0;title\u0007\u001b]8;;http://x\u001b\\link", "link"],
  ["a progress bar keeps its last state", "10 %\r50 %\r100 %\nnext", "100 %\nnext"],
  ["Windows line ends", "a\r\nb\r\n", "a\nb\n"],
  ["control characters are seen", "a\u0000b\u0008", "a␀b␈"],
  ["text cannot be turned around", "safe\u202eevil", "safe\ufffdevil"],
  ["tabs and other languages stay", "\tθ = π", "\tθ = π"],
  ["an escape that never ends", "\u001b[", "␛["],
];

for (const [name, text, shown] of terminals) {
  test(`the terminal shows an iteration: ${name}`, () => assert.equal(terminalText(text), shown));
}

test("the html template escapes texts and keeps HTML", () => {
  const list = ["<b>", "&"].map((text) => html`<li title="${text}">${text}</li>`);
  assert.equal(
    html`<ul>${list}${null}${undefined}${false}${0}</ul>`.html,
    '<ul><li title="&#60;b&#62;">&#60;b&#62;</li><li title="&#38;">&#38;</li>0</ul>',
  );
});

const sources: [name: string, source: string, has: string][] = [
  ["keywords", "for x in y:\n  pass", '<span class="py-keyword">for</span> x'],
  ["strings are escaped", 'a = "</pre>"', '<span class="py-string">&#34;&#60;/pre&#62;&#34;</span>'],
  ["comments", "# if", '<span class="py-comment"># if</span>'],
  ["names that begin as keywords", "format = 1", 'format = <span class="py-number">1</span>'],
  ["broken source", 'def (((\n "', "def"],
  ["formatted strings", "f'{a}'", '<span class="py-string">f&#39;{a}&#39;</span>'],
];

for (const [name, source, has] of sources) {
  test(`Python code is highlighted: ${name}`, () => {
    const { html: marked } = highlightPython(source);
    assert.ok(marked.includes(has), marked);
    const plain = marked.replace(/<\/?span[^>]*>/g, "").replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code));
    assert.equal(plain, source);
  });
}

function lineOf(launched: number[], trained: number[], edges = [0, 1, 2, 4]): IterationMetrics {
  const bins = (values: number[]) =>
    edges.map((edge, i) => values.filter((v) => v >= edge && v < (edges[i + 1] ?? Infinity)).length);
  const mean = (values: number[]) => (values.length > 0 ? values.reduce((a, b) => a + b) / values.length : null);
  return {
    durationHistogram: { edgesSeconds: edges, launched: bins(launched), trained: bins(trained) },
    launchedMeanDurationSeconds: mean(launched),
    trainedMeanDurationSeconds: mean(trained),
  } as IterationMetrics;
}

const agree = [lineOf([1, 3], [1, 3])];
const shorter = [lineOf([1, 3], [1])];
const longer = [lineOf([1, 3], [3])];
const meanings: [name: string, lines: IterationMetrics[], weighting: string, meaning: RegExp][] = [
  ["off, agree", agree, "Off", /they agree, so no slow work is being lost .*Every program counts the same/],
  ["paper, agree", agree, "Paper", /they agree.*does not repair a loss. It prefers slow programs, by choice/],
  ["capped, agree", agree, "Capped", /by choice.*, up to the cap\./],
  ["completion, agree", agree, "Completion", /near 1.*count the same/],
  ["off, shorter", shorter, "Off", /50 % shorter. Slow work is being lost.*drifts towards fast programs/],
  ["paper, shorter", shorter, "Paper", /Slow work is being lost.*only in part: no weight restores/],
  ["completion, shorter", shorter, "Completion", /only in part/],
  ["longer", longer, "Paper", /50 % longer/],
  ["nothing ran", [lineOf([], [])], "Paper", /^$/],
  ["no line", [], "Paper", /^$/],
  ["means are over programs, not over lines", [lineOf([1, 1, 1], [1]), lineOf([3], [1, 1, 3])], "Off", /agree/],
];

for (const [name, lines, weighting, meaning] of meanings) {
  test(`a sentence describes durations: ${name}`, () => {
    assert.match(durationSentence(lines, weighting, "CarryOver"), meaning);
  });
}

const NOTHING = { generating: 0, updating: 0, idleActors: 0, idlePrograms: 0, idleStaleness: 0, idleOther: 0 };
const did = (change: Partial<typeof NOTHING>) => ({ engineSeconds: { ...NOTHING, ...change } });
const uses: [name: string, lines: Parameters<typeof engineSentence>[0], sentence: string][] = [
  ["no line", [], ""],
  ["lines of an earlier longrun", [{}, {}], ""],
  [
    "one reason to idle among several",
    [did({ generating: 41, updating: 37, idleActors: 15, idlePrograms: 7 })],
    "The engine was busy 78 % of the time: 41 % generating, 37 % updating. It idled 22 %, mostly (15 %) because executions waited for an actor: raise actors.max or actors.slots.",
  ],
  [
    "one reason alone",
    [did({ generating: 40, updating: 10, idleStaleness: 50 })],
    "The engine was busy 50 % of the time: 40 % generating, 10 % updating. It idled 50 % because as many samples were open as algorithm.maxStaleness allows: raise algorithm.maxStaleness, or make programs faster.",
  ],
  [
    "busy",
    [did({ generating: 60, updating: 35, idleOther: 5 })],
    "The engine was busy 95 % of the time: 60 % generating, 35 % updating. It hardly idled.",
  ],
  [
    "a run that an earlier longrun began",
    [{}, did({ generating: 60, updating: 35, idleOther: 5 })],
    "The engine was busy 95 % of the time in the 1 of 2 iterations that measured it: 60 % generating, 35 % updating. It hardly idled.",
  ],
];
for (const [name, lines, sentence] of uses)
  test(`a sentence describes the engine's time: ${name}`, () => assert.equal(engineSentence(lines), sentence));

const counted = (samples: number, flagged: number, guards: Partial<IterationMetrics["guards"]>, cappedRewards = 0) =>
  ({ samples, validFraction: 0.5, flagged, guards, cappedRewards }) as IterationMetrics;
const flags: [name: string, lines: IterationMetrics[], sentence: RegExp][] = [
  ["no line", [], /^$/],
  ["none", [counted(8, 0, {})], /^$/],
  ["lines of an earlier longrun", [{ samples: 8, validFraction: 1 } as IterationMetrics], /^$/],
  [
    "over all lines, and in the last",
    [counted(8, 3, { sampleSubmission: 2, constant: 3 }), counted(12, 1, { constant: 1 })],
    /^Guards flagged 4 of 10 valid submissions \(40 %\), in the last iteration 1 of 6, .*submission 2, one .* 4\. No reward was lowered; tasks\[\]\.guardedRewardCap would lower them\.$/,
  ],
  ["capped", [counted(8, 1, { constant: 1 }, 1)], /guardedRewardCap lowered the reward of 1\.$/],
  ["perfect", [counted(8, 1, { perfect: 1 })], /perfect score 1\..* answers were found, not predicted/],
];
for (const [name, lines, sentence] of flags)
  test(`a sentence describes flagged submissions: ${name}`, () => assert.match(guardSentence(lines), sentence));

const floor = (samples: number, clampedRewards?: number, mostlyClamped = false) =>
  ({ samples, validFraction: 0.5, clampedRewards, mostlyClamped }) as IterationMetrics;
const clamps: [name: string, lines: IterationMetrics[], sentence: RegExp][] = [
  ["none, and lines of an earlier longrun", [floor(8, 0), floor(8)], /^$/],
  ["some", [floor(8, 1), floor(12, 2)], /^3 of 10 valid rewards were raised to the grader's rewardFloor\.$/],
  [
    "most, at first",
    [floor(8, 4, true), floor(12, 2)],
    /^6 of 10 .* In 1 iteration they were more than half .* give grader\.rewardRange in a new run\.$/,
  ],
];
for (const [name, lines, sentence] of clamps)
  test(`a sentence describes clamped rewards: ${name}`, () => assert.match(clampedSentence(lines), sentence));

test("histograms of several lines add up without empty ends", () => {
  assert.deepEqual(addedHistogram([lineOf([1], [1]), lineOf([5, 5, 1.5], [])]), [
    { label: "1–2", launchedShare: 0.5, trainedShare: 1 },
    { label: "2–4", launchedShare: 0, trainedShare: 0 },
    { label: "≥ 4", launchedShare: 0.5, trainedShare: 0 },
  ]);
  assert.deepEqual(addedHistogram([]), []);
});

const improvements: [name: string, shown: number, noPrevious: number, tooLong: number, said: RegExp][] = [
  ["all shown", 9, 0, 0, /^$/],
  ["none valid", 0, 4, 0, /^8 of 8 improve prompts \(100 %\) became scratch prompts: 8 because no/],
  ["some too long", 3, 0, 1, /^2 of 8 .* \(25 %\) .*: 2 because the program did not fit: model\.maxPromptTokens/],
  ["both", 2, 1, 1, /: 2 because no program was valid yet; 2 because the program did not fit/],
];
for (const [name, shown, noPrevious, tooLong, said] of improvements)
  test(`a sentence describes improvements that fell back to scratch: ${name}`, () =>
    assert.match(
      improvementSentence([
        { improvePrompts: { shown, noPrevious, tooLong } },
        {},
        { improvePrompts: { shown, noPrevious, tooLong } },
      ]),
      said,
    ));

test("a sentence describes what debug prompts gained", () => {
  const none = { debugPrompts: { shown: 0, noFailure: 0, tooLong: 0 }, debugging: { fixed: 0, notFixed: 0, broke: 0 } };
  assert.equal(debuggingSentence([none, {}]), "");
  const some = { debugPrompts: { shown: 5, noFailure: 2, tooLong: 0 }, debugging: { fixed: 1, notFixed: 2, broke: 1 } };
  assert.equal(
    debuggingSentence([some, none, some]),
    "8 samples were trained on that mend a failed program: 2 (25 %) fixed it, 4 did not, 2 came less far than before. " +
      "Other prompts took the place of debug prompts: 4 because no program had failed yet.",
  );
  const fellBack = { ...some, improvePrompts: { shown: 0, noPrevious: 3, tooLong: 0 } };
  assert.match(improvementSentence([fellBack]), /3 of 3 improve prompts \(100 %\) became scratch or debug prompts/);
});

test("a sentence describes programs that reached for what they are not given", () => {
  const line = (reaching: number, reaches: Partial<IterationMetrics["reaches"]>) =>
    ({ samples: 8, reaching, reaches }) as IterationMetrics;
  assert.equal(reachSentence([]), "");
  assert.equal(reachSentence([line(0, {}), { samples: 8 } as IterationMetrics]), "");
  assert.match(
    reachSentence([{ samples: 8 } as IterationMetrics, line(3, { answers: 1, paths: 3 }), line(1, { refused: 1 })]),
    /^4 of 16 programs \(25 %\), in the last iteration 1 of 8, reached .*: names the answers or a grader 1, names a path outside its folder 3, was refused by the sandbox 1\. Rewards/,
  );
});

test("the gap of the best of many is compared with the median gap, in the metric's direction", () => {
  const of = (direction: "Higher" | "Lower", gap: number, medianGap: number) =>
    gapSentence({ direction, gap, medianGap, programs: 40 });
  assert.match(
    of("Lower", -9, -4),
    /median over the 40 valid programs until then is −4\.000, .* flattered this one by 5\.000\.$/,
  );
  assert.match(of("Lower", 13, 13), /did not flatter this one\.$/);
  assert.match(of("Higher", 0.2, 0.05), /flattered this one by 0\.150\.$/);
  assert.match(of("Higher", -0.2, 0), /is ±0, .* did not flatter this one\.$/);
  assert.equal(
    gapSentence({ gap: 1, medianGap: 1, programs: 1 }),
    "The gap is the public score minus the private score.",
  );
});
