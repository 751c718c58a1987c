/** Tests `longrun run` and `evaluate` with `model.source`: the real fetch from a server with the hub's API, and a fake learner. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { exitStatusOf } from "../../controller/errors.ts";
import { planEvaluation } from "../../controller/local/evaluation/evaluation-plan.ts";
import type { RunOptions } from "../../controller/local/options.ts";
import { runLocally } from "../../controller/local/run.ts";
import { COMMIT, HubServer } from "../../learner/hub/hub-server.fixture.ts";
import { environment, makeHome, removeHome } from "./fakes/home.ts";
import { FAKES } from "./fakes/parts.ts";

const POLICY = fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url));
const home = makeHome();
const start = process.cwd();
before(() => process.chdir(home));
after(() => {
  process.chdir(start);
  removeHome(home);
});

async function run(out: string, set: string[], env: NodeJS.ProcessEnv = {}, options: Partial<RunOptions> = {}) {
  let text = "";
  const output = { write: (more: string) => (text += more) };
  const around = {
    parts: FAKES,
    stdout: output,
    stderr: output,
    env: { ...environment(home), ...env },
    now: () => new Date(),
  };
  const addresses = { listen: "127.0.0.1:0", metricsListen: "127.0.0.1:0" };
  try {
    const all = { task: [], out, set, json: false, verbose: false, ...addresses, ...options };
    return { status: await runLocally("run.yaml", all, around), text };
  } catch (error) {
    return { status: exitStatusOf(error), text: `${text}${(error as Error).message}` };
  }
}

const fromHub = (text: string) => ["model.policy=null", `model.source={huggingFace: {${text}}}`];

test("A run fetches its model once, and its folder names the commit's folder, from which it is resumed", async () => {
  await using server = await HubServer.of(POLICY);
  const set = fromHub(`repo: acme/model, endpoint: "${server.endpoint}", secretRef: {name: longrun-hub-on-a-cluster}`);
  const first = await run("first", set);
  assert.equal(first.status, 0, first.text);
  assert.match(first.text, /^Fetching acme\/model\n/);
  const folder = join(home, "cache/models/acme/model", COMMIT);
  assert.ok(existsSync(join(folder, "model.safetensors")));
  const { model } = parse(readFileSync(join(home, "first/trainingrun.yaml"), "utf8")).spec;
  assert.deepEqual([model.policy, model.source], [folder, undefined]);

  const files = () => server.asked.filter(({ path }) => path.includes("/resolve/")).length;
  const before = files();
  assert.equal((await run("second", set)).status, 0);
  assert.equal(files(), before);
  const resumed = await run("first", [], {}, { resume: "first", out: undefined });
  assert.doesNotMatch(resumed.text, /Fetching|policy/);
});

test("A model that cannot be fetched gives one line, and no run begins", async () => {
  await using server = await HubServer.of(POLICY);
  server.gated = true;
  const env = { HF_ENDPOINT: server.endpoint };
  const { status, text } = await run("gated", fromHub("repo: acme/model, revision: refs/pr/1"), env);
  assert.equal(status, 2);
  assert.match(text, /^Fetching acme\/model\nacme\/model is gated: accept its licence at [^\n]* HF_TOKEN[^\n]*$/);
  assert.ok(!readdirSync(home).includes("gated"));
});

test("An evaluation is named after the repository; --model takes precedence over the source", () => {
  const request = { set: fromHub("repo: acme/model"), samples: "4", improve: false };
  assert.equal(planEvaluation("run.yaml", request).directory, join(home, "evaluations/model-diamonds"));
  const { model } = planEvaluation("run.yaml", { ...request, model: "policy" }).run.spec;
  assert.deepEqual([model.policy, model.source], [join(home, "policy"), undefined]);
});
