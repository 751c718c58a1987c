import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { writeBundle } from "../../controller/debug/bundle.ts";
import { openStore } from "../../learner/store/store.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-debug-test-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const NOW = new Date("2026-01-02T03:04:05.678Z");
const PRIVATE = "-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----";

describe("longrun debug of a run folder", () => {
  const run = join(folder, "my-run");
  for (const directory of ["logs", "checkpoints/1-000001/policy", "best"])
    mkdirSync(join(run, directory), { recursive: true });
  const put = (path: string, text: string) => writeFileSync(join(run, path), text);
  put("trainingrun.yaml", "kind: TrainingRun\n");
  put("metrics.jsonl", '{"iteration":1,"tokensGenerated":40}\n');
  put("logs/learner.log", `{"msg":"the run begins","run":"my-run"}\n${PRIVATE}\n`);
  put("checkpoints/1-000001/policy/model.safetensors", "weights");
  put("best/submission.csv", "id,price\n1,2\n");
  openStore(join(run, "store.sqlite")).close();
  const bundle = async (out: string) => writeBundle(run, { namespace: "default", out: join(folder, out) }, NOW);
  const read = (path: string, file: string) =>
    execFileSync("tar", ["-xzOf", path, `longrun-debug-my-run-20260102T030405Z/${file}`], { encoding: "utf8" });

  test("The bundle has logs, settings and metrics, and no weights, programs, submissions or store", async () => {
    const path = await bundle("a.tar.gz");
    const names = execFileSync("tar", ["-tzf", path], { encoding: "utf8" }).trim().split("\n");
    const files = names.filter((name) => !name.endsWith("/")).map((name) => name.slice(name.indexOf("/") + 1));
    const expected = [
      "files.txt",
      "logs/learner.log",
      "machine.json",
      "metrics.jsonl",
      "store.json",
      "trainingrun.yaml",
    ];
    assert.deepEqual(files.sort(), expected);
    assert.equal(read(path, "metrics.jsonl"), '{"iteration":1,"tokensGenerated":40}\n');
    assert.match(read(path, "files.txt"), /7 checkpoints\/1-000001\/policy\/model\.safetensors/);
    assert.deepEqual(JSON.parse(read(path, "store.json")), {
      samples: [],
      results: [],
      attempts: [],
      grades: [],
      checkpoints: [],
    });
  });

  test("The bundle holds no key", async () => {
    const log = read(await bundle("b.tar.gz"), "logs/learner.log");
    assert.match(log, /the run begins/);
    assert.doesNotMatch(log, /MIIEvQ/);
  });

  test("A missing path is reported as a missing run folder, not looked up in a cluster", async () => {
    for (const missing of [join(folder, "nope"), "test/nope", "./nope"])
      await assert.rejects(writeBundle(missing, { namespace: undefined }, NOW), {
        code: "input",
        message: `${missing}: there is no such run folder; name one, or a TrainingRun of a cluster as NAME or NAMESPACE/NAME`,
      });
  });

  test("A name that is neither a folder nor in a cluster is reported as both", async () => {
    for (const missing of ["runs-of-nobody/nope", "nope"]) {
      const kubeconfig = join(folder, "no-kubeconfig");
      await assert.rejects(writeBundle(missing, { kubeconfig }, NOW), {
        code: "input",
        message: new RegExp(
          `^${missing}: there is no such run folder, and no such TrainingRun was found: the kubeconfig .* cannot be read`,
        ),
      });
    }
  });

  test("An existing file is not overwritten", async () => {
    await bundle("c.tar.gz");
    await assert.rejects(bundle("c.tar.gz"), { code: "input", message: /c\.tar\.gz: is there already/ });
  });
});

test("longrun debug refuses a folder without a run, and names it", async () => {
  const refused = writeBundle(folder, { namespace: "default" }, NOW);
  await assert.rejects(refused, { code: "input", message: /is no run folder, it has no trainingrun\.yaml/ });
});
