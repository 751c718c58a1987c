/**
 * The private part of the answers reaches nothing that it must not, in a whole run with the real learner.
 *
 * Two runs differ in their private answers alone, which have digits that stand nowhere else. An actor records all that the learner sends.
 * The digits must be in no message, prompt, grade, reward, previous solution or metric, and both runs must have the same prompts, rewards
 * and weights. The private scores themselves and the report must have them, or the search would find nothing anywhere.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { deflateSync } from "node:zlib";
import { policyFolder } from "../crds/policy.ts";
import { clientCredentials } from "../proto/channel.ts";
import {
  ActorProtocolClient,
  clientOptions,
  type FromLearnerReceived,
  messages,
  PROTOCOL_VERSION,
} from "../proto/service.ts";
import { KEY, manifest, until, World } from "../test/faults/real-learner.ts";
import { readTokenizer } from "./engine/index.ts";
import { partsOf } from "./grading/split.ts";
import { openStore } from "./store/store.ts";

const ROWS = 40;
const ITERATIONS = 2;
/** Private answers begin with it, and so does every private score: errors of other predictions are small beside it. */
const NEEDLE = "98765432";
const OTHER_NEEDLE = "12345678";
const hidden = new Set(partsOf(0.5, "MAE", [new Float64Array(ROWS)], () => 0)!.private);

const worlds = { first: new World(), other: new World() };
const ends: (() => void)[] = [];
before(() => Promise.all(Object.values(worlds).map((world) => world.prepare())));
after(() => {
  for (const end of ends) end();
  return Promise.all(Object.values(worlds).map((world) => world.remove()));
});

const csv = (value: (id: number) => number) =>
  `id,price\n${Array.from({ length: ROWS }, (_, id) => `${id},${value(id)}\n`).join("")}`;

function writeTask(world: World, needle: string): void {
  const prepared = join(world.folder, "task/prepared");
  const features = (id: number) => `${id},0.${id + 3},Ideal,E,SI2,60.7,56,5.3,5.25,3.2`;
  const head = "id,carat,cut,color,clarity,depth,table,x,y,z";
  const rows = Array.from({ length: ROWS }, (_, id) => `${features(id)}\n`).join("");
  writeFileSync(join(prepared, "public/test.csv"), `${head}\n${rows}`);
  writeFileSync(
    join(prepared, "public/sample_submission.csv"),
    csv(() => 0),
  );
  const answer = (id: number) => (hidden.has(id) ? Number(`${needle}1000000`) + id : 1500 + id);
  writeFileSync(join(prepared, "private/answers.csv"), csv(answer));
}

const MANIFEST = manifest({ iterations: ITERATIONS })
  .replace("executionTimeoutSeconds: 20", "executionTimeoutSeconds: 20\n      privateShare: 0.5")
  .replace("baseline: BatchMean", "baseline: BatchMean, oversampling: 1, maxStaleness: 0, durationWeighting: Off")
  .replace("prompts: { style: Short }", "prompts: { style: Short, improveProbability: 0.9 }")
  .replace("everyIterations: 1000", "everyIterations: 1");

/** An actor with one slot that runs nothing: its submissions depend on the leased execution's seed. @returns what it receives */
function work(world: World, port: number): FromLearnerReceived[] {
  const address = `127.0.0.1:${port}`;
  const credentials = clientCredentials(join(world.folder, "tls/test-actor-0"));
  const client = new ActorProtocolClient(address, credentials, clientOptions(address, { maxReconnectSeconds: 0.1 }));
  const stream = client.work();
  ends.push(() => {
    stream.cancel();
    client.close();
  });
  const received: FromLearnerReceived[] = [];
  stream.on("error", () => {});
  stream.on("data", (message: FromLearnerReceived) => {
    received.push(message);
    if (message.welcome) stream.write({ ready: { freeSlots: 1 } });
    if (!message.lease) return;
    const { attempt, seed } = message.lease;
    const submission = Buffer.from(csv((id) => 1500 + (Number(seed) % 997) / 100 + id));
    const packed = deflateSync(submission);
    stream.write({
      result: {
        ...{ attempt, outcome: messages.Outcome.COMPLETED, durationSeconds: 0.01, isolationLevel: "none" },
        submission: {
          ...{ bytes: submission.length, compressedBytes: packed.length, chunks: 1 },
          sha256: createHash("sha256").update(submission).digest("hex"),
        },
      },
    });
    stream.write({ chunk: { attempt, index: 0, data: packed } });
    stream.write({ ready: { freeSlots: 1 } });
  });
  stream.write({
    hello: { protocolVersion: PROTOCOL_VERSION, actor: "test-actor-0", isolationLevel: "none", slots: 1 },
  });
  return received;
}

/** Trains until the run has ended. */
async function trained(world: World, needle: string) {
  writeTask(world, needle);
  const level = process.env.LOG_LEVEL;
  process.env.LOG_LEVEL = "info";
  const learner = world.learner(MANIFEST);
  if (level === undefined) delete process.env.LOG_LEVEL;
  else process.env.LOG_LEVEL = level;
  const { port, metricsPort } = await learner.listening;
  const statuses: string[] = [];
  const links = world.link(() => port);
  const received = work(world, port);
  const done = () => {
    statuses.push(JSON.stringify(links.observed(KEY)));
    return existsSync(join(world.run, "summary.json")) && world.summary().state === "succeeded";
  };
  await until(done, "the run", 240).catch((error: Error) => assert.fail(`${error.message}\n${learner.output}`));
  const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  return { received, statuses, metrics, log: learner.output };
}

/** Returns all cells of a store's tables but the private scores, with prompts and responses as texts. */
function cellsOf(world: World): string[] {
  const database = new DatabaseSync(join(world.run, "store.sqlite"), { readOnly: true });
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  const names = tables.map(({ name }) => String(name)).filter((name) => name !== "private_scores");
  assert.ok(names.includes("grades") && names.includes("previous_solutions"));
  const cells = names.flatMap((name) =>
    database
      .prepare(`SELECT * FROM ${name}`)
      .all()
      .flatMap((row) =>
        Object.entries(row).map(
          ([column, value]) =>
            `${name}.${column}: ${value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : value}`,
        ),
      ),
  );
  database.close();
  const tokenizer = readTokenizer(policyFolder("quickstart", "", ""));
  const store = openStore(join(world.run, "store.sqlite"), { readOnly: true });
  const texts = store
    .allSamples()
    .map(({ promptTokens }) => `prompt: ${tokenizer.decode(promptTokens, { skipSpecialTokens: false })}`);
  assert.ok(
    texts.some((text) => text.includes("Improve this solution")),
    "an improve prompt was written",
  );
  const previous = store.previousSolutions("diamonds", 99).map((solution) => JSON.stringify(solution));
  assert.ok(previous.length > 0);
  store.close();
  return [...cells, ...texts, ...previous];
}

/** What the run learned from, and what came of it. */
function learned(world: World) {
  const store = openStore(join(world.run, "store.sqlite"), { readOnly: true });
  const samples = Array.from({ length: ITERATIONS }, (_, index) => store.samplesOf(index + 1)).flat();
  const facts = samples.map(({ id, kind, previous, promptTokens, solution, grade }) => {
    const prompt = promptTokens.join();
    return { id, kind, previous, prompt, solution, grade };
  });
  const { id: best } = JSON.parse(readFileSync(join(world.run, "best/score.json"), "utf8")) as { id: string };
  const valid = store.allSamples().filter(({ grade }) => grade?.valid);
  const byPublic = valid.toSorted((a, b) => a.grade!.score! - b.grade!.score!)[0]!;
  assert.equal(store.sample(best)!.grade!.score, byPublic.grade!.score, "the public score chose the best");
  const scores = samples.map(({ id }) => store.privateScore(id)?.score);
  store.close();
  const database = new DatabaseSync(join(world.run, "store.sqlite"), { readOnly: true });
  const digests = database.prepare("SELECT iteration, digest FROM checkpoints ORDER BY iteration").all();
  database.close();
  return { facts, best, scores, digests: digests.map(({ iteration, digest }) => `${iteration} ${digest}`) };
}

test("private answers and scores reach no actor, prompt, reward, choice or metric", { timeout: 600_000 }, async () => {
  const said = await trained(worlds.first, NEEDLE);
  await trained(worlds.other, OTHER_NEEDLE);
  const [one, two] = [learned(worlds.first), learned(worlds.other)];

  // The digits would be found.
  const isPlanted = (text: string) => text.replaceAll(",", "").includes(NEEDLE);
  const graded = one.scores.filter((score) => score !== undefined);
  assert.ok(graded.length >= 4 && graded.every((score) => isPlanted(String(score))), `${one.scores}`);
  const inRun = (path: string) => readFileSync(join(worlds.first.run, path), "utf8");
  assert.ok(isPlanted(inRun("best/score.json")));
  assert.ok(isPlanted(inRun("report.html")));

  assert.ok(said.received.some(({ lease }) => lease));
  const places: Record<string, string[]> = {
    "a message to an actor": said.received.map((message) =>
      JSON.stringify(message, (_, value) =>
        value?.type === "Buffer" ? Buffer.from(value.data).toString("latin1") : value,
      ),
    ),
    "a status": said.statuses,
    "the metrics": [said.metrics, inRun("metrics.jsonl")],
    "the log": [said.log],
    "the store": cellsOf(worlds.first),
    "another file": readdirSync(worlds.first.run, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !/^(report\.html|score\.json|store\.sqlite.*)$/.test(entry.name))
      .map((entry) => `${entry.name}: ${readFileSync(join(entry.parentPath, entry.name), "latin1")}`),
  };
  for (const [place, texts] of Object.entries(places)) {
    assert.ok(texts.join("").length > 100, place);
    assert.deepEqual(texts.filter(isPlanted), [], place);
  }

  // Nothing in a more hidden form: other private answers change no prompt, grade, reward, choice or weight.
  assert.deepEqual(two.facts, one.facts);
  assert.equal(two.best, one.best);
  assert.deepEqual(two.digests, one.digests);
  assert.equal(one.digests.length, ITERATIONS);
  assert.notEqual(one.digests[0]!.split(" ")[1], one.digests[1]!.split(" ")[1], "the policy learned");
  assert.ok(new Set(one.facts.map(({ grade }) => grade!.reward)).size > 3, "rewards differ");
  assert.notDeepEqual(two.scores, one.scores);
});
