/** Tests the setup of a pod: a supervisor connects to zygotes that listen, each in a container of its own. */
import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { writeRunCertificates } from "../proto/certificates.ts";
import { messages } from "../proto/service.ts";
import { Learner } from "./learner.fixture.ts";
import { Sidecar } from "./sidecar.fixture.ts";
import { environment, folder, python, SLEEPER, until } from "./small-task.fixture.ts";

describe("the actor of a pod", () => {
  const ends: (() => unknown)[] = [];
  let tls: Awaited<ReturnType<typeof writeRunCertificates>>;
  before(async () => {
    tls = await writeRunCertificates(join(folder, "tls"), { validSeconds: 600 });
  });
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
  });

  async function startActor(sandboxes: string, args: string[] = []) {
    const learner = new Learner(tls.learner);
    await learner.start();
    const actor = fork(
      join(import.meta.dirname, "main.ts"),
      [
        ...["--learner", `127.0.0.1:${learner.port}`, "--tls", await tls.actor("actor-0"), "--name", "actor-0"],
        ...["--sandboxes", sandboxes, "--inputs", `small=${folder}`, "--isolation", "landlock", ...args],
      ],
      { stdio: ["ignore", "ignore", "pipe", "ipc"], env: { ...process.env, LOG_LEVEL: "info" } },
    );
    let log = "";
    actor.stderr!.setEncoding("utf8").on("data", (text: string) => {
      log += text;
    });
    ends.push(() => {
      actor.kill("SIGKILL");
      learner.kill();
    });
    return { learner, actor, log: () => log };
  }
  const exitOf = async (actor: ChildProcess) => {
    if (actor.exitCode === null && actor.signalCode === null) await once(actor, "exit");
    return actor.exitCode ?? actor.signalCode;
  };
  const limits = { timeoutSeconds: 600, memoryBytes: 2 ** 30, scratchBytes: 2 ** 26 };

  test("a sandbox that is killed loses its attempt with the slot, takes no lease until it is back, then works", async () => {
    const sidecar = new Sidecar({ environment, warm: [] });
    const other = new Sidecar({ environment, warm: [], sandboxes: sidecar.sandboxes, slot: 1 });
    ends.push(
      () => sidecar.stop(),
      () => other.stop(),
    );
    const { learner, actor, log } = await startActor(sidecar.sandboxes, ["--slots", "2"]);
    const hello = await learner.next("hello", 1, () => true, 60);
    assert.deepEqual([hello.isolationLevel, hello.slots], ["landlock", 2], log());
    assert.equal((await learner.next("ready")).freeSlots, 2);

    const task = "small";
    const attempt = learner.lease("e1", { task, program: python(SLEEPER), limits });
    await learner.next("heartbeat", 1, (message) => (message.heartbeat?.running?.[0]?.elapsedSeconds ?? 0) > 0.1, 20);
    await sidecar.kill("SIGKILL");
    const lost = await learner.next("result", 1, () => true, 20);
    assert.deepEqual([lost.outcome, lost.slot], [messages.Outcome.LOST, 0]);
    assert.match(lost.detail, /its connection/);
    learner.send({ ack: { attempt, accepted: true, reason: "accepted" } });
    await until("one slot is offered", () => lastReady(learner) === 1);

    // The other slot works meanwhile. The end of an idle sandbox is noticed, too.
    const second = learner.lease("e2", { task, program: python("print(2)"), limits });
    const done = await learner.next("result", 2, () => true, 20);
    assert.deepEqual([done.outcome, done.slot], [messages.Outcome.COMPLETED, 1]);
    learner.send({ ack: { attempt: second, accepted: true, reason: "accepted" } });
    await other.kill("SIGKILL");
    await until("no slot is offered", () => lastReady(learner) === 0);

    sidecar.start();
    other.start();
    await until("both are offered again", () => lastReady(learner) === 2, 30);
    learner.lease("e3", { task, program: python("print(open('input/train.csv').read())"), limits });
    assert.equal((await learner.next("result", 3, () => true, 20)).outcome, messages.Outcome.COMPLETED);
    actor.kill("SIGTERM");
    learner.send({ ack: { attempt: { execution: "e3", number: 1, fence: "7" }, accepted: true, reason: "accepted" } });
    await learner.next("drained", 1, () => true, 10);
    assert.equal(await exitOf(actor), 0);
    await sidecar.listening(); // ready for the next supervisor
  });

  test("an actor whose slot stays away finishes its programs and fails with a message that names the slot", async () => {
    const sidecar = new Sidecar({ environment, warm: [] });
    ends.push(() => sidecar.stop());
    const { learner, actor, log } = await startActor(sidecar.sandboxes, ["--restart-seconds", "1"]);
    await learner.next("ready", 1, () => true, 60);
    await sidecar.kill("SIGKILL");
    assert.equal(await exitOf(actor), 1);
    assert.match(log(), /nothing listens at [^"]*slot-0\/control.sock after/);
    assert.equal(learner.count("drained"), 1);
  });

  test("an idle actor stays, because the controller decides the number of actors", async () => {
    const sidecar = new Sidecar({ environment, warm: [] });
    ends.push(() => sidecar.stop());
    const { learner, actor } = await startActor(sidecar.sandboxes);
    learner.welcome = { ...learner.welcome, idleSeconds: 0.2 };
    await learner.next("ready", 1, () => true, 60);
    await sleep(600);
    assert.equal(learner.count("drained"), 0);
    actor.kill("SIGTERM");
    assert.equal(await exitOf(actor), 0);
  });

  test("an actor whose sidecars never appear gives up in time and says where to look", async () => {
    const { actor, log } = await startActor(join(folder, "nowhere"), ["--start-seconds", "0.2"]);
    assert.equal(await exitOf(actor), 1);
    assert.match(log(), /nothing listens at [^"]*nowhere\/slot-0\/control.sock after 0.2 s/);
  });

  test("SIGTERM ends an actor at once while it waits for its sidecars", async () => {
    const { actor } = await startActor(join(folder, "nowhere"));
    // Wait until it has started and idles: before that, Node would simply end.
    const processorTicks = () => readFileSync(`/proc/${actor.pid}/stat`, "utf8").split(" ").slice(13, 15).join();
    for (let before = ""; before !== processorTicks(); await sleep(500)) before = processorTicks();
    const start = performance.now();
    actor.kill("SIGTERM");
    assert.equal(await exitOf(actor), 0);
    assert.ok(performance.now() - start < 1000);
  });

  const cases: [string, string[], RegExp][] = [
    ["an input without a path", ["--inputs", "small"], /--inputs: \\"small\\" is not TASK=PATH/],
    ["a relative input", ["--inputs", "small=data"], /absolute path/],
    ["no inputs", ["--inputs", ""], /--inputs is missing/],
    ["what is of one machine", ["--python", "/usr/bin/python3"], /--python does not go with --sandboxes/],
    ["modules, which containers import", ["--warm", "numpy"], /--warm does not go with --sandboxes/],
    ["no time", ["--restart-seconds", "0"], /--restart-seconds is 0/],
  ];
  for (const [name, args, message] of cases)
    test(`bad input ends the actor with one line and exit status 2: ${name}`, async () => {
      const { actor, log } = await startActor(folder, args);
      assert.equal(await exitOf(actor), 2);
      assert.match(log(), message);
      assert.equal(log().trim().split("\n").length, 1);
    });
});

function lastReady(learner: Learner): number | undefined {
  return learner.received.findLast((message) => message.message === "ready")?.ready?.freeSlots ?? undefined;
}
