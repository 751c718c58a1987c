import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ManifestError } from "./errors.ts";
import { readManifestFile } from "./manifest-file.ts";
import { parseTrainingRun } from "./trainingrun.ts";

const run = (name: string, more = ""): string => `apiVersion: longrun.dev/v1alpha1
kind: TrainingRun
metadata: { name: ${name} }
spec: { tasks: [{ name: diamonds }], model: { policy: quickstart }${more} }
`;
const secret = "apiVersion: v1\nkind: Secret\nmetadata: { name: hub }\n";
const list = (...objects: string[]): string =>
  `apiVersion: v1\nkind: List\nitems:\n${objects.map((object) => `  - ${object.trimEnd().replaceAll("\n", "\n    ")}\n`).join("")}`;
const names = (text: string): unknown[] =>
  readManifestFile(text, "run.yaml").runs.map((object) => parseTrainingRun(object, "run.yaml").metadata.name);

function refused(text: string): string[] {
  try {
    for (const object of readManifestFile(text, "run.yaml").runs) parseTrainingRun(object, "run.yaml");
  } catch (error) {
    assert.ok(error instanceof ManifestError, String(error));
    return error.problems;
  }
  return [];
}

describe("a manifest file", () => {
  const accepted: [name: string, text: string, runs: string[], skipped: string[]][] = [
    ["one object", run("a"), ["a"], []],
    ["--- at both ends", `---\n${run("a")}---\n`, ["a"], []],
    ["comments alone between two ---", `# head\n---\n# Source: a\n---\n${run("a")}...\n`, ["a"], []],
    ["another kind before and after", `${secret}---\n${run("a")}---\n${secret}`, ["a"], ["Secret hub", "Secret hub"]],
    ["two runs", `${run("a")}---\n${run("b")}`, ["a", "b"], []],
    ["a list", list(secret, run("a"), run("b")), ["a", "b"], ["Secret hub"]],
    ["a list beside a run", `${list(run("a"))}---\n${run("b")}`, ["a", "b"], []],
    ["JSON", `{ "kind": "List", "items": [{ "kind": "Pod" }] }\n---\n${run("a")}`, ["a"], ["Pod"]],
    ["an anchor", run("a", ", actors: { min: &n 3, max: *n }"), ["a"], []],
  ];
  for (const [name, text, runs, skipped] of accepted)
    test(`with ${name}`, () => {
      assert.deepEqual(names(text), runs);
      assert.deepEqual(readManifestFile(text, "run.yaml").skipped, skipped);
    });

  const noObject = "holds no object; write apiVersion, kind, metadata and spec as in manifests/quickstart";
  const cases: [name: string, text: string, expected: string[]][] = [
    ["nothing", "---\n---\n# nothing\n", [`run.yaml:1: ${noObject}`]],
    [
      "other kinds alone",
      `${secret}---\n${list("kind: Pod")}`,
      [
        "run.yaml: holds no TrainingRun but Secret hub, Pod; give a file that has an object of apiVersion " +
          "longrun.dev/v1alpha1 and kind TrainingRun, such as manifests/quickstart/trainingrun.yaml",
      ],
    ],
    [
      "an empty list",
      "apiVersion: v1\nkind: List\nitems: []\n",
      [
        "run.yaml: holds no TrainingRun; give a file that has an object of apiVersion longrun.dev/v1alpha1 and kind " +
          "TrainingRun, such as manifests/quickstart/trainingrun.yaml",
      ],
    ],
    [
      "a wrong field in one of three",
      `${secret}---\n${run("a")}---\n${run("b", ", sed: 1")}`,
      ["run.yaml:13: document 3, TrainingRun b: spec.sed is unknown; did you mean seed?"],
    ],
    [
      "a wrong item of a list",
      list(secret, run("a", ", sed: 1")),
      ["run.yaml:10: item 2, TrainingRun a: spec.sed is unknown; did you mean seed?"],
    ],
    [
      "a misspelt kind",
      `${secret}---\n${run("a").replace("kind: TrainingRun", "kind: TraningRun")}`,
      ['run.yaml:6: document 2, TraningRun a: kind is "TraningRun"; give TrainingRun'],
    ],
    ["no object in one", `${run("a")}---\n- 1\n`, [`run.yaml:6: document 2: ${noObject}`]],
    ["no object in a list", list("7", run("a")), [`run.yaml:4: item 1: ${noObject}`]],
    [
      "broken YAML in another kind",
      `${run("a")}---\nkind: Secret\nkind: Secret\n`,
      ["run.yaml:7: document 2: not valid YAML: Map keys must be unique"],
    ],
  ];
  for (const [name, text, expected] of cases)
    test(`with ${name} is refused`, () => assert.deepEqual(refused(text), expected));
});

test("text with two runs is refused where one is wanted", () => {
  assert.throws(
    () => parseTrainingRun(`${secret}---\n${run("a")}---\n${run("b")}`, "run.yaml"),
    /^ManifestError: run\.yaml: holds 2 TrainingRuns \(a in line 5, b in line 10\); put each into a separate file$/,
  );
});
