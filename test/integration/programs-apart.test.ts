/** Modules that many programs of a run import must not change another program's results: a learner, and an actor's own process. */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ensurePythonEnvironment } from "../../actor/python-env.ts";
import { closeActors, startLearner, TestActor, tls } from "../../learner/server/server.fixture.ts";
import { newSample } from "../../learner/store/store.fixture.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-apart-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const task = join(folder, "tasks", "diamonds");
mkdirSync(join(task, "prepared", "public"), { recursive: true });
writeFileSync(join(task, "task.yaml"), "name: diamonds\n");
writeFileSync(join(task, "prepared", "public", "train.csv"), "id,x\n1,2\n");

/** Importing the module makes `sklearn.impute.IterativeImputer` appear for the whole process. */
const ENABLES = '"""\nimport sklearn.experimental.enable_iterative_imputer\n"""\nprint(1)\n';
const NEEDS_IT_ENABLED = "from sklearn.impute import IterativeImputer\nprint(IterativeImputer)\n";
const PROGRAMS = 400;

test("An ImportError stays an ImportError, whatever earlier programs have defined or imported", async () => {
  const { directory } = await ensurePythonEnvironment();
  const learner = await startLearner();
  const { store } = learner;
  const until = async (condition: () => boolean, what: string) => {
    for (let waited = 0; !condition(); waited += 50) {
      assert.ok(waited < 60_000, `waited 60 s until ${what}: ${log}`);
      await sleep(50);
    }
  };
  const result = (id: string) => store.samples([id])[0]!.result;
  const others = Array.from({ length: PROGRAMS }, (_, index) => `other-${index}`);
  let log = "";
  store.addSamples(others.map((id) => newSample(id, { instrumented: ENABLES })));
  const fast = new TestActor(learner.address, "actor-1");
  await fast.hello({ slots: 200 });
  fast.beat();
  for (let taken = 0; taken < PROGRAMS; taken++) {
    fast.ready(1);
    fast.handIn((await fast.nextLease()).attempt);
  }
  await until(() => result(others.at(-1)!) !== undefined, "the others have run");
  fast.end();

  const at = [
    "--learner",
    learner.address,
    "--tls",
    tls.actor,
    "--name",
    "actor-0",
    "--scratch",
    join(folder, "scratch"),
  ];
  const actor = fork(
    join(import.meta.dirname, "../../actor/main.ts"),
    [...at, "--task-dir", join(folder, "tasks"), "--python", directory],
    { stdio: ["ignore", "ignore", "pipe", "ipc"] },
  );
  const exit = once(actor, "exit");
  actor.stderr!.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  try {
    await until(() => /connected to the learner/.test(log), "the actor is connected");
    const imports = "import sklearn.experimental.enable_iterative_imputer\n";
    store.addSamples([newSample("enables", { instrumented: `${imports}${NEEDS_IT_ENABLED}` })]);
    await until(() => result("enables") !== undefined, "a program that enables it has run");
    assert.equal(result("enables")!.outcome, "completed", result("enables")!.terminalOutput);
    store.addSamples([newSample("another", { instrumented: NEEDS_IT_ENABLED })]);
    await until(() => result("another") !== undefined, "the other program has run");
    assert.equal(result("another")!.outcome, "failed", result("another")!.terminalOutput);
    assert.match(result("another")!.terminalOutput, /ImportError: IterativeImputer is experimental/);
  } finally {
    actor.kill("SIGKILL");
    await exit;
    closeActors();
    await learner.stop();
  }
});
