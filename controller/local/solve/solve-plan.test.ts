import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { SEARCH_DEFAULTS } from "../../../proto/solve.ts";
import { releaseRunFolder } from "../run-folder.ts";
import { createWorkFolder, openWorkFolder } from "../work-folder.ts";
import { planSolve, type SolvePlan, type SolveRequest, workOf } from "./solve-plan.ts";

const home = mkdtempSync(join(tmpdir(), "longrun-solve-plan-"));
after(() => rmSync(home, { recursive: true, force: true }));
const at = (name: string) => join(home, name);

function lay(name: string, text = ""): void {
  mkdirSync(join(home, name, ".."), { recursive: true });
  writeFileSync(at(name), text);
}
const GRADER = "grader: { metric: MAE, idColumn: id, targetColumns: [price], direction: Lower }";
lay("wage/task.yaml", `name: wage\n${GRADER}\nexecutionTimeoutSeconds: 33\n`);
for (const file of ["public/train.csv", "public/sample_submission.csv", "public/description.md", "private/answers.csv"])
  lay(`wage/prepared/${file}`);
for (const file of ["config.json", "model.safetensors", "tokenizer.json", "corpus.hashes"]) lay(`pretrained/${file}`);
lay(
  "run/trainingrun.yaml",
  `apiVersion: longrun.dev/v1alpha1
kind: TrainingRun
metadata: { name: trained }
spec:
  seed: 4
  tasks: [{ name: diamonds, executionTimeoutSeconds: 9 }]
  model: { policy: quickstart, temperature: 0.8 }
  actors: { min: 1, max: 2, slots: 3 }
`,
);
mkdirSync(at("run/checkpoints/2-000008"), { recursive: true });

const NUMBERS = { drafts: "5", debugProbability: "0.5", debugDepth: "3", exploration: "0.7" };
const request = (change: Partial<SolveRequest>): SolveRequest =>
  ({ ...NUMBERS, search: "greedy", budget: "50 executions", body: [], set: [], ...change }) as SolveRequest;
const plan = (change: Partial<SolveRequest>, env: NodeJS.ProcessEnv = {}): SolvePlan => planSolve(request(change), env);
const API = { endpoint: "https://api.example.com/v1", modelName: "org/large", task: at("wage") };

describe("The plan of a search", () => {
  test("A run searches with its newest checkpoint, on its task, with its slots and settings", () => {
    const { run, settings, directory } = plan({ run: at("run") });
    assert.deepEqual(settings, {
      ...{ search: "greedy", ...SEARCH_DEFAULTS, budget: { executions: 50 }, slots: 6 },
      policy: { iteration: 8, checkpoint: at("run/checkpoints/2-000008") },
    });
    assert.deepEqual([run.metadata.name, run.spec.seed, run.spec.model.temperature], ["trained", 4, 0.8]);
    assert.equal(directory, join(process.cwd(), "solutions/run-diamonds-greedy"));
  });

  test("A run can search on another task, with other slots and another seed", () => {
    const { run, settings } = plan({ run: at("run"), task: at("wage"), slots: "64", seed: "7" });
    const [task] = run.spec.tasks;
    assert.deepEqual([task!.name, task!.executionTimeoutSeconds, run.spec.seed, settings.slots], ["wage", 33, 7, 64]);
  });

  test("A policy that longrun pretrained is asked with the prompts that it knows", () => {
    const { run, settings } = plan({ model: at("pretrained"), task: at("wage"), search: "tree", budget: "30m" });
    assert.deepEqual(
      [run.spec.prompts.style, settings.policy, settings.budget],
      ["Short", { iteration: 0 }, { seconds: 1800 }],
    );
  });

  test("An endpoint gets the paper's prompts, requests beside each other for each slot, prices and fields", () => {
    const body = ["max_tokens=null", "max_completion_tokens=4096", 'reasoning_effort="low"'];
    const { run, settings, directory } = plan({ ...API, slots: "4", prices: "2.5,10", body });
    assert.deepEqual(settings.endpoint, {
      ...{ url: "https://api.example.com/v1", model: "org/large", concurrency: 8, prices: { input: 2.5, output: 10 } },
      body: { max_tokens: null, max_completion_tokens: 4096, reasoning_effort: "low" },
    });
    assert.equal(settings.policy, undefined);
    const { style } = run.spec.prompts;
    assert.deepEqual(
      [style, run.spec.model.maxPromptTokens, run.spec.model.maxResponseTokens],
      ["Paper", 100_000, 8192],
    );
    assert.equal(directory, join(process.cwd(), "solutions/large-wage-greedy"));
    assert.equal(plan({ ...API, concurrency: "3" }).settings.endpoint!.concurrency, 3);
  });

  test("--set takes precedence over the options' defaults", () => {
    const { run } = plan({ ...API, set: ["model.maxResponseTokens=99", "model.temperature=0.2"] });
    assert.deepEqual([run.spec.model.maxResponseTokens, run.spec.model.temperature], [99, 0.2]);
  });
});

describe("Bad input of a search gives one line", () => {
  const KEY = { LONGRUN_ENDPOINT_KEY: "sk-secret" };
  const cases: [name: string, change: Partial<SolveRequest>, message: RegExp, env?: NodeJS.ProcessEnv][] = [
    ["nobody writes", { task: at("wage") }, /^nothing writes solutions; give --model MODEL, --run RUN, or --endpoint/],
    ["two write", { run: at("run"), model: "quickstart" }, /^--run and --model: give one of them alone$/],
    ["no task", { model: "quickstart" }, /^--task is missing/],
    ["a budget", { ...API, budget: "soon" }, /^--budget soon: give a time \(s, m, h, d\), executions or tokens/],
    [
      "tokens of a policy",
      { run: at("run"), budget: "5 tokens" },
      /^--budget 5 tokens: tokens are counted for an --endpoint alone/,
    ],
    ["drafts", { run: at("run"), drafts: "0" }, /^--drafts 0: give a whole number from 1 to/],
    [
      "a probability",
      { run: at("run"), debugProbability: "1.5" },
      /^--debug-probability 1\.5: give a number from 0 to 1$/,
    ],
    ["an exploration", { run: at("run"), exploration: "" }, /^--exploration : give a number from 0/],
    ["slots", { run: at("run"), slots: "none" }, /^--slots none: give a whole number/],
    ["a run folder", { run: at("wage") }, /^--run .*wage: this is no run folder/],
    [
      "a model's name",
      { ...API, modelName: undefined },
      /^--endpoint https:\S+: which model\? give --model-name NAME$/,
    ],
    [
      "a name without an endpoint",
      { run: at("run"), modelName: "a" },
      /^--model-name a: is for an --endpoint; leave it out$/,
    ],
    ["an address", { ...API, endpoint: "api.example.com" }, /^--endpoint api\.example\.com: give an address such as/],
    [
      "a password",
      { ...API, endpoint: "https://me:sk-secret@a.example/v1" },
      /^--endpoint: the address has a user or a password/,
    ],
    [
      "a key in the address",
      { ...API, endpoint: "https://a.example/v1?api-version=1&api-key=sk-secret" },
      /^--endpoint: the parameter api-key of the address would stand in the folder and in logs; leave it out, and set \w+ to the key$/,
    ],
    [
      "a whole address",
      { ...API, endpoint: "https://a.example/v1/chat/completions" },
      /: leave out \/chat\/completions/,
    ],
    [
      "a key over http",
      { ...API, endpoint: "http://10.0.0.9/v1" },
      /^--endpoint http:\S+: the key would cross the network unencrypted/,
      KEY,
    ],
    [
      "a key with a line break",
      API,
      /^LONGRUN_ENDPOINT_KEY has a character that no HTTP header may have, such as a line break; set it anew$/,
      { LONGRUN_ENDPOINT_KEY: "sk-secret\r" },
    ],
    ["prices", { ...API, prices: "1" }, /^--prices 1: give two numbers/],
    ["a price", { ...API, prices: "1,-2" }, /^--prices 1,-2: give two numbers/],
    ["a field", { ...API, body: ["temperature"] }, /^--body temperature: give FIELD=JSON/],
    [
      "a field's value",
      { ...API, body: ["user=me"] },
      /^--body user=me: the value is no JSON; a text needs quotes: 'user="me"'$/,
    ],
    ["an own field", { ...API, body: ["messages=[]"] }, /^--body messages=\[\]: messages is the search's own/],
    ["requests", { ...API, concurrency: "0" }, /^--concurrency 0: give a whole number/],
    [
      "a static policy",
      { ...API, set: ["model.instrumenter=StaticPolicy"] },
      /^model\.instrumenter is StaticPolicy, and with --endpoint/,
    ],
  ];
  for (const [name, change, message, env = {}] of cases)
    test(name, () => {
      assert.throws(
        () => plan(change, env),
        (error: Error) => {
          assert.match(error.message, message);
          assert.doesNotMatch(error.message, /\n|sk-secret/);
          return true;
        },
      );
    });

  test("A key to this machine needs no encryption", () => {
    for (const host of ["127.0.0.1:8000", "localhost", "[::1]:9"])
      assert.ok(plan({ ...API, endpoint: `http://${host}/v1` }, KEY).settings.endpoint);
  });
});

describe("The folder of a search", () => {
  const state = (change: Partial<SolveRequest> = {}) =>
    openWorkFolder(at("search"), workOf(plan({ run: at("run"), ...change })));

  test("It is continued by the same command, and by one with a larger budget after its end; not by another search", () => {
    assert.equal(state(), "new");
    createWorkFolder(at("search"), workOf(plan({ run: at("run") })));
    releaseRunFolder(at("search"));
    assert.equal(state(), "begun");
    releaseRunFolder(at("search"));
    lay("search/summary.json", JSON.stringify({ state: "succeeded" }));
    assert.equal(state(), "done");
    assert.equal(state({ budget: "60 executions" }), "begun");
    releaseRunFolder(at("search"));
    assert.equal(state({ budget: "60 executions" }), "done");
    assert.throws(
      () => state({ search: "tree" }),
      /^ControllerError: --out .*search: has a search whose solve\.search is greedy, .*tree|has a search whose solve\.search/,
    );
    assert.throws(() => state({ seed: "5" }), /has a search whose seed/);
  });

  test("It is continued with other slots, requests side by side and prices, and not with another endpoint", () => {
    const api = (change: Partial<SolveRequest>) => workOf(plan({ ...API, slots: "2", ...change }));
    const open = (change: Partial<SolveRequest>) => {
      assert.equal(openWorkFolder(at("asked"), api(change)), "begun");
      releaseRunFolder(at("asked"));
      return JSON.parse(readFileSync(at("asked/solve.json"), "utf8")).endpoint as object;
    };
    createWorkFolder(at("asked"), api({}));
    releaseRunFolder(at("asked"));
    const known = { url: "https://api.example.com/v1", model: "org/large", body: {} };
    assert.deepEqual(open({ slots: "4" }), { ...known, concurrency: 8 });
    assert.deepEqual(open({ concurrency: "3", prices: "1,2" }), {
      ...known,
      concurrency: 3,
      prices: { input: 1, output: 2 },
    });
    // what the endpoint's refusal of a long prompt asks for
    open({ set: ["model.maxPromptTokens=5000", "model.maxResponseTokens=99"] });
    assert.match(readFileSync(at("asked/trainingrun.yaml"), "utf8"), /maxPromptTokens: 5000\b/);
    assert.throws(() => open({ set: ["model.temperature=0.1"] }), /has a search whose model\.temperature/);
    assert.throws(() => open({ modelName: "small" }), /has a search whose solve\.endpoint\.model/);
  });
});
