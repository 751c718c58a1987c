/** Tests `longrun evaluate` as a process, with fakes of the learner and the actors: its folder, its end, Ctrl-C and continuation. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { environment, makeHome, nothingLeft, removeHome } from "../integration/fakes/home.ts";

const CLI = fileURLToPath(new URL("../integration/fakes/cli.ts", import.meta.url));
const home = makeHome();
after(() => removeHome(home));
mkdirSync(join(home, "trained/checkpoints/1-000003"), { recursive: true });
writeFileSync(
  join(home, "trained/trainingrun.yaml"),
  readFileSync(join(home, "run.yaml"), "utf8").replace("./policy", join(home, "policy")),
);

interface Finished {
  status: number | null;
  stdout: string;
  stderr: string;
}

/** @param interrupt sends Ctrl-C once stdout matches this */
function evaluate(args: string[], learner: object = {}, interrupt?: RegExp): Promise<Finished> {
  const child = spawn(process.execPath, [CLI, "evaluate", ...args], {
    cwd: home,
    env: { ...environment(home, { learner }), MARK: "evaluate", COLUMNS: "120" },
  });
  const said = { stdout: "", stderr: "" };
  child.stdout.on("data", (text) => {
    said.stdout += text;
    if (!interrupt?.test(said.stdout)) return;
    interrupt = undefined;
    child.kill("SIGINT");
  });
  child.stderr.on("data", (text) => (said.stderr += text));
  const timer = setTimeout(() => child.kill("SIGKILL"), 60_000);
  return new Promise((resolve) =>
    child.once("close", (status) => {
      clearTimeout(timer);
      resolve({ status, ...said });
    }),
  );
}
const run = ["--run", "trained", "--improve", "--samples", "4"];
const folder = join(home, "trained/evaluation");

test("An evaluation of a run can be stopped, continued and finished, and a finished one is printed again", async () => {
  const stopped = await evaluate(run, { evaluateSeconds: 30 }, /evaluating the policy/);
  assert.match(
    stopped.stdout,
    /^Evaluating test, before and after iteration 3, on task diamonds in .*trained\/evaluation$/m,
  );
  assert.equal(
    stopped.stderr,
    `Stopping; Ctrl-C again stops at once.\nStopped. Go on with: the same command; finished work is kept in ${folder}\n`,
  );
  assert.equal(stopped.status, 130);
  await nothingLeft("MARK=evaluate");
  assert.deepEqual(JSON.parse(readFileSync(join(folder, "policies.json"), "utf8")), {
    before: { iteration: 0 },
    after: { iteration: 3, checkpoint: join(home, "trained/checkpoints/1-000003") },
  });

  const finished = await evaluate(run);
  assert.match(finished.stdout, /^Going on to evaluate test/m);
  assert.match(finished.stdout, /\n\nA fake table\.\n\nReport: .*evaluation\/report\.html\n/);
  assert.equal(finished.status, 0, finished.stderr);
  assert.equal(existsSync(join(folder, "lock")), false);

  const again = await evaluate([...run, "--json"]);
  const { directory, before } = JSON.parse(again.stdout);
  assert.deepEqual([directory, before.samples, again.status], [folder, 4, 0]);
  assert.equal(again.stderr, "");
});
