import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { parser } from "@lezer/python";
import { uniforms } from "../engine/model/random.ts";
import { family } from "../rollout/family.ts";
import { parseSolution } from "../rollout/solution.ts";
import { readRegistry } from "../tasks/registry.ts";
import {
  type CorpusText,
  defaultCorpus,
  inCorpus,
  makeCorpus,
  programHash,
  programHashes,
  readCorpus,
  unknownTask,
} from "./corpus.ts";
import { Draw } from "./draw.ts";
import { mistakesOf } from "./mistakes.ts";
import { drawDesign, writeDraft } from "./programs.ts";
import { shapes } from "./shapes.ts";

const corpus = makeCorpus({ ...defaultCorpus, texts: 3000 });

const isPython = (program: string) => {
  let whole = true;
  parser.parse(`${program}\n`).iterate({
    enter: (node) => {
      if (node.type.isError) whole = false;
    },
  });
  return whole;
};
const share = (texts: readonly CorpusText[], holds: (text: CorpusText) => boolean) =>
  texts.filter(holds).length / texts.length;

test("the same seed gives the same texts, another seed others", () => {
  const some = { ...defaultCorpus, texts: 50 };
  assert.deepEqual(makeCorpus(some), corpus.slice(0, 50));
  assert.notDeepEqual(makeCorpus({ ...some, seed: 1 }), corpus.slice(0, 50));
});

test("texts have the requested kinds and sizes", () => {
  assert.ok(Math.abs(share(corpus, ({ kind }) => kind === "improve") - defaultCorpus.improveShare) < 0.03);
  assert.ok(Math.abs(share(corpus, ({ mistake }) => mistake !== undefined) - defaultCorpus.mistakeShare) < 0.03);
  for (const { name } of shapes) assert.ok(Math.abs(share(corpus, ({ task }) => task === name) - 1 / 3) < 0.03, name);
  assert.ok(new Set(corpus.map(({ response }) => response)).size > 0.97 * corpus.length);
});

test("every response is a solution, every program without a mistake is Python that reads and writes the right files", () => {
  for (const { response, program, mistake } of corpus) {
    const parsed = parseSolution(response);
    assert.ok("program" in parsed, response);
    assert.equal(parsed.program, `${program}\n`);
    assert.ok(parsed.plan.split(/\.(?: |$)/).filter(Boolean).length >= 3, parsed.plan);
    if (mistake !== undefined) continue;
    assert.ok(isPython(program), program);
    for (const part of ['"input/train.csv"', '"input/test.csv"', '"submission.csv"']) assert.ok(program.includes(part));
    assert.notEqual(family(program), "other", program);
    const imports = program.matchAll(/^from \S+ import (\w+)$/gm);
    const code = program.replace(/^(from|import) .*$/gm, "");
    for (const [, name] of imports) assert.match(code, new RegExp(`\\b${name}\\b`), "an import that is not used");
    for (const [, name] of code.matchAll(/\b([A-Z]\w+[a-z])\(/g))
      assert.match(program, new RegExp(`import ${name}$`, "m"));
    assert.equal(/\bnp\./.test(code), program.includes("import numpy as np"));
  }
});

test("the corpus has many families, no family dominates, and no prompt tells the family", () => {
  for (const { name } of shapes) {
    const texts = corpus.filter(({ task }) => task === name);
    const families = Map.groupBy(texts, ({ program }) => family(program));
    assert.ok(families.size >= 12, `${name}: ${families.size} families`);
    for (const [label, members] of families) assert.ok(members.length < 0.3 * texts.length, `${name}: ${label}`);
    const prompts = texts.filter(({ kind }) => kind === "scratch").map(({ messages }) => messages[1].content);
    assert.equal(new Set(prompts).size, 1);
  }
});

test("an improve prompt shows a whole solution and an output that fits it", () => {
  for (const { kind, messages } of corpus) {
    if (kind !== "improve") continue;
    const content = messages[1].content;
    assert.match(content, /^Improve this solution\.\n/);
    assert.ok("program" in parseSolution(content));
    const [program, output] = content.split("\n```\nOutput:\n");
    assert.match(output, /^imported packages\nloaded data\n/);
    assert.equal(program.includes('"training loss:"'), output.includes("training loss"));
    assert.equal(program.includes('"validation loss:"'), output.includes("validation loss"));
  }
});

test("the corpus has the shapes of the bundled tasks", () => {
  const registry = readRegistry();
  for (const shape of shapes) {
    const { task, description } = registry[shape.name];
    assert.deepEqual((task.grader as { targetColumns: string[] }).targetColumns, [shape.target]);
    assert.equal(shape.columns.at(-1), shape.target);
    for (const column of shape.columns) assert.match(description, new RegExp(`^\\|.*\\b${column}\\b.*\\|`, "m"));
    const features = [...shape.numeric, ...shape.categorical, ...(shape.text ? [shape.text] : [])];
    assert.deepEqual(new Set(["id", ...features, shape.target]), new Set(shape.columns));
  }
});

test("every mistake has a place in some program, and changes it", async (t) => {
  const drafts = Array.from({ length: 300 }, (_, i) => {
    const draw = new Draw(uniforms(0, "drafts", i));
    const shape = shapes[i % shapes.length];
    return { shape, lines: writeDraft(drawDesign(shape, draw), shape, draw).lines };
  });
  for (const [place, [, name]] of mistakesOf(shapes[0]).entries()) {
    await t.test(name, () => {
      let places = 0;
      for (const [i, { shape, lines }] of drafts.entries()) {
        const before = [...lines];
        const [, , apply] = mistakesOf(shape)[place];
        const changed = apply(lines, new Draw(uniforms(0, name, i)));
        assert.deepEqual(lines, before, "the draft itself is left as it is");
        if (changed === undefined) continue;
        assert.notDeepEqual(changed, lines);
        places += 1;
      }
      assert.ok(places >= 10, `${places} places`);
    });
  }
});

test("programs are found by their hashes", () => {
  const programs = corpus.map(({ program }) => program);
  const hashes = programHashes(programs);
  assert.equal(hashes.length, 8 * new Set(programs).size);
  for (const program of programs.slice(0, 200)) {
    assert.ok(inCorpus(program, hashes));
    assert.ok(inCorpus(`${program.replace("\n", "  \n")}\n\n`, hashes), "white space at line ends does not count");
    assert.ok(!inCorpus(`${program}\nprint(1)`, hashes));
  }
  assert.ok(!inCorpus("a = 1", Buffer.alloc(0)));
  const single = programHashes(["a = 1"]);
  assert.deepEqual(single, programHash("a = 1"));
  assert.ok(inCorpus("a = 1", single));
});

test("a task that the policy has not learned is named with the tasks that it has learned", () => {
  const folder = join(import.meta.dirname, "../../manifests/quickstart/policy");
  const { tasks } = readCorpus(folder, "diamonds")!;
  assert.deepEqual(tasks, ["diamonds", "movie", "wage"]);
  assert.equal(
    unknownTask(tasks, "quickstart", "houses"),
    "the bundled policy quickstart knows diamonds, movie and wage; houses is none of them, so few of its programs may be valid",
  );
  assert.match(unknownTask(tasks, "./mine", "houses")!, /^the policy \.\/mine knows/);
  assert.equal(unknownTask(tasks, "quickstart", "wage"), undefined);
  assert.equal(unknownTask([], "quickstart", "houses"), undefined);
});
