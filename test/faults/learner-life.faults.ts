/**
 * The life of a learner on Kubernetes, with real processes: suspended and resumed with a changed manifest, finished and restarted, replaced
 * while it was paused, started with unusable input.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore } from "../../learner/store/store.ts";
import { EXIT_STATUS } from "../../proto/exit-status.ts";
import { missingTools } from "../tools.ts";
import { freePort, KEY, manifest, SERVER_NAME, sleeps, until, World } from "./real-learner.ts";

/** Executions that end at once before the next ones wait: the executions of one iteration, and one more. */
const QUICK = 5;
const worlds: World[] = [];
const mounts: string[] = [];
after(() => {
  for (const mount of mounts) execFileSync("umount", ["--lazy", mount]);
  for (const world of worlds) world.remove();
});
async function newWorld(): Promise<World> {
  const world = await new World().prepare();
  worlds.push(world);
  return world;
}

test("A run is suspended, resumed with a changed manifest, finished and started again", {
  timeout: 180_000,
}, async () => {
  const world = await newWorld();
  let learner = world.learner(manifest());
  const { port } = await learner.listening;
  const links = world.link(() => port);
  const status = () => links.observed(KEY)?.status;
  const resume = async (text: string, instance: string) => {
    learner = world.learner(text, { listen: `127.0.0.1:${port}` });
    await learner.listening;
    links.ensure(KEY, { uid: "1", serverName: SERVER_NAME, instance });
  };
  const [code] = await learner.probe("/readyz");
  assert.equal(code, 200);

  // Suspended during an iteration, while programs run: one of them ends in time, the other does not.
  world.actor(port, "test-actor-0", 1, sleeps(0.2));
  await until(() => (status()?.iteration ?? 0) >= 2, "the first iteration's end");
  const long = Promise.withResolvers<void>();
  world.actor(port, "test-actor-1", 1, async (lease, signal) => {
    await long.promise;
    return sleeps(0)(lease, signal, () => {});
  });
  await until(() => status()?.actors.some((it) => it.name === "test-actor-1" && it.running === 1), "a long execution");
  const answer = await links.suspend(KEY, { reason: "spec.suspend is true", drainSeconds: 1 });
  const { iteration, path } = answer.checkpoint ?? {};
  assert.ok(iteration! >= 1);
  assert.ok(existsSync(join(world.run, path!, "policy/model.safetensors")), "the checkpoint is on disk");
  assert.equal(answer.running, 1);
  await until(() => status()?.phase === "STOPPED", "the last status");
  assert.equal(status()?.message, "suspended: spec.suspend is true");
  assert.deepEqual(
    [status()?.executions?.disrupted, status()?.executions?.running],
    [1, 0],
    "the other is given back, which costs it no attempt",
  );
  assert.deepEqual([world.summary().state, world.summary().iterations], ["stopped", iteration]);
  assert.deepEqual(await learner.probe("/healthz"), [200, "STOPPED"]);
  assert.equal(learner.child.exitCode, null, "the learner stays");
  learner.child.kill("SIGTERM");
  assert.equal(await learner.exit, 0);

  // The resumed run continues from there with the changed manifest.
  await resume(manifest({ iterations: iteration! + 1 }), "pod-2");
  long.resolve();
  world.actor(port, "test-actor-2", 2, sleeps(0.2));
  await until(() => status()?.phase === "SUCCEEDED", "success");
  assert.match(
    readFileSync(join(world.run, "trainingrun.yaml"), "utf8"),
    new RegExp(`iterations: ${iteration! + 1}\n`),
  );
  const store = openStore(join(world.run, "store.sqlite"), { readOnly: true });
  const rows = store.iterationRows();
  store.close();
  assert.deepEqual(
    rows.map((row) => row.iteration),
    Array.from({ length: iteration! + 1 }, (_, index) => index + 1),
  );
  assert.equal(rows.at(-1)?.lineage, 2);
  assert.equal(rows[iteration! - 1]?.lineage, 1, "the checkpoint's iterations were not trained again");
  assert.equal(learner.child.exitCode, null, "the learner stays");
  assert.deepEqual(await learner.probe("/readyz"), [200, "SUCCEEDED"]);
  learner.child.kill("SIGTERM");
  assert.equal(await learner.exit, 0);

  // A restarted learner of a finished run reports that at once: it loads no weights and begins no lineage.
  const { updatedAt } = world.summary();
  await resume(manifest({ iterations: iteration! + 1 }), "pod-3");
  await until(() => links.observed(KEY)?.connected === false && status()?.phase === "SUCCEEDED", "the same end");
  assert.deepEqual(
    [status()?.iteration, status()?.finished?.lineage, status()?.checkpoint?.iteration],
    [iteration! + 1, 2, iteration! + 1],
  );
  assert.equal(status()?.finished?.iteration, iteration! + 1);
  assert.deepEqual(await learner.probe("/readyz"), [200, "SUCCEEDED"]);
  assert.equal(world.summary().updatedAt, updatedAt);
  learner.child.kill("SIGTERM");
  assert.equal(await learner.exit, 0);
});

test("The container's status has one line about bad input; a rolled pod loses no execution and no iteration", {
  timeout: 60_000,
}, async () => {
  const world = await newWorld();
  const listen = `127.0.0.1:${await freePort()}`;
  const first = world.learner(manifest(), { listen });
  const { port } = await first.listening;
  const links = world.link(() => port);
  const program = Promise.withResolvers<void>();
  let programs = 0;
  world.actor(port, "test-actor-0", 1, async (lease, signal) => {
    if (++programs > QUICK) await program.promise;
    return sleeps(0)(lease, signal, () => {});
  });
  const actor = () => links.observed(KEY)?.status?.actors[0];
  await until(
    () => programs > QUICK && links.observed(KEY)?.status?.iteration === 2,
    "an execution after an iteration",
  );

  const cases: [string, RegExp][] = [
    [manifest({ seed: 1 }), /^\S*config-1\.yaml:6: .*seed cannot change while the run exists/],
    [manifest().replace("quickstart", "nowhere"), /^.*policy.*/],
    [manifest({ batchSize: 5 }), /^\S*config-3\.yaml:\d+: .*miniBatchSize must divide algorithm\.batchSize/],
  ];
  for (const [text, message] of cases) {
    const learner = world.learner(text);
    assert.equal(await learner.exit, 2);
    assert.match(learner.termination ?? "", message);
    assert.ok(!learner.termination?.includes("\n"));
    assert.equal(learner.output.trim(), learner.termination);
  }
  assert.equal(first.child.exitCode, null, "bad input takes nothing away from the learner that runs");

  // Like a rolled pod: one is asked to stop, and another one starts.
  first.child.kill("SIGTERM");
  assert.equal(await first.exit, 0);
  const second = world.learner(manifest(), { listen });
  await second.listening;
  await until(() => links.observed(KEY)?.status?.phase !== "STOPPED" && actor()?.connected, "the actor's return");
  assert.equal(actor()?.running, 1);
  const status = () => links.observed(KEY)?.status;
  assert.deepEqual([status()?.iteration, status()?.checkpoint?.iteration], [2, 1], "the first wrote a checkpoint");
  program.resolve();
  const executions = () => status()?.executions;
  await until(() => (executions()?.completed ?? 0) > QUICK, "its result");
  assert.deepEqual([executions()?.retried, executions()?.lost], [0, 0]);
});

test("A paused learner that was replaced writes nothing more, and reports no end", {
  timeout: 120_000,
}, async () => {
  const world = await newWorld();
  const old = world.learner(manifest({ iterations: 2 }));
  const { port: oldPort } = await old.listening;
  const oldLinks = world.link(() => oldPort);
  await until(() => oldLinks.observed(KEY)?.connected, "the first learner's status");
  old.child.kill("SIGSTOP");

  const young = world.learner(manifest({ iterations: 2 }));
  const { port } = await young.listening;
  world.actor(port, "test-actor-0", 2, sleeps(0.05));
  const links = world.link(() => port);
  await until(() => (links.observed(KEY)?.status?.iteration ?? 0) >= 2, "an iteration");

  const metrics = readFileSync(join(world.run, "metrics.jsonl"), "utf8");
  old.child.kill("SIGCONT");
  assert.equal(await old.exit, EXIT_STATUS.infrastructure);
  assert.match(old.termination ?? "", /fence\.json was taken by \S+ at .*: stop this learner/);
  const said = oldLinks.observed(KEY)?.status?.phase ?? "STARTING";
  assert.ok(!["SUCCEEDED", "FAILED_RUN", "STOPPED"].includes(said), "the controller hears no end of it");

  await until(() => links.observed(KEY)?.status?.phase === "SUCCEEDED", "the run's end");
  assert.ok(readFileSync(join(world.run, "metrics.jsonl"), "utf8").startsWith(metrics));
  assert.deepEqual([world.summary().state, world.summary().iterations], ["succeeded", 2]);
  assert.equal(JSON.parse(readFileSync(join(world.run, "fence.json"), "utf8")).number, 2);
});

test("A learner without actors waits longer than every limit", { timeout: 60_000 }, async () => {
  const world = await newWorld();
  const text = manifest()
    .replace("executionTimeoutSeconds: 20", "executionTimeoutSeconds: 0.5")
    .replace("leaseSeconds: 10", "leaseSeconds: 2, stallSeconds: 1");
  const learner = world.learner(text);
  const { port } = await learner.listening;
  const links = world.link(() => port);
  const status = () => links.observed(KEY)?.status;
  await until(() => status()?.phase === "EXECUTING", "the wait");
  await sleep(5000);
  assert.deepEqual([learner.child.exitCode, status()?.phase], [null, "EXECUTING"]);
  world.actor(port, "test-actor-0", 2, sleeps(0.05));
  await until(() => (status()?.iteration ?? 0) >= 2, "an iteration's end");
});

const mount = (...args: string[]) => execFileSync("mount", args, { stdio: "pipe" });
const mayMount = (() => {
  try {
    execFileSync("unshare", ["--mount", "true"], { stdio: "ignore" });
    return process.getuid?.() === 0;
  } catch {
    return false;
  }
})();

const mountTest = {
  timeout: 180_000,
  skip: missingTools(["mount", "unshare"]) ?? (!mayMount && "needs the right to mount"),
};
async function newVolume() {
  const world = await newWorld();
  const volume = join(world.folder, "data");
  mkdirSync(volume, { recursive: true });
  mount("-t", "tmpfs", "-o", "size=256m", "tmpfs", volume);
  mounts.push(volume);
  return { world, volume };
}

test(
  "A disk that is full of checkpoints is refused, and the named keepLast lets the run continue",
  mountTest,
  async () => {
    const { world, volume } = await newVolume();
    const listen = `127.0.0.1:${await freePort()}`;
    const start = (keepLast: number) =>
      world.learner(manifest().replace("everyIterations: 1000", `everyIterations: 1, keepLast: ${keepLast}`), {
        listen,
      });
    let executions = 0;
    // Rewards differ, so that checkpoints have the optimiser's moments.
    const differ: ReturnType<typeof sleeps> = async (...lease) => {
      const result = await sleeps(0.05)(...lease);
      return executions++ % 2 === 0 ? result : { ...result, outcome: "failed", exitStatus: 1 };
    };
    const kept = () => readdirSync(join(world.run, "checkpoints")).filter((name) => !name.endsWith(".partial"));
    let learner = start(3);
    const { port } = await learner.listening;
    const links = world.link(() => port);
    const actor = world.actor(port, "test-actor-0", 2, differ);
    await until(() => (links.observed(KEY)?.status?.checkpoint?.iteration ?? 0) >= 3, "three checkpoints");
    actor.stop();
    learner.child.kill("SIGTERM");
    assert.equal(await learner.exit, 0);
    assert.equal(kept().length, 3);

    const { bavail, bsize } = statfsSync(volume);
    writeFileSync(join(volume, "filler"), Buffer.alloc(bavail * bsize - 6_000_000));
    learner = start(3);
    assert.equal(await learner.exit, EXIT_STATUS.volumeFull);
    assert.match(
      learner.termination ?? "",
      /keepLast 3 and the next one need .*; lower it to 2, or set learner\.storage\.size/,
    );
    assert.equal(kept().length, 3);
    const { iterations } = world.summary();
    const left = join(world.run, "generators/3");
    mkdirSync(left, { recursive: true });
    learner = start(1);
    await learner.listening;
    assert.equal(kept().length, 1, "older checkpoints are removed before the next one is written");
    assert.equal(existsSync(left), false, "weights that a killed learner was sending are removed");
    world.actor(port, "test-actor-1", 2, differ);
    await until(() => (links.observed(KEY)?.status?.checkpoint?.iteration ?? 0) > iterations, "the next checkpoint");
  },
);

test("A learner on a full or read-only volume ends, and continues when the volume is mended", mountTest, async () => {
  const { world, volume } = await newVolume();
  const listen = `127.0.0.1:${await freePort()}`;
  const start = () => world.learner(manifest().replace("everyIterations: 1000", "everyIterations: 1"), { listen });
  let learner = start();
  const { port } = await learner.listening;
  const links = world.link(() => port);
  const heard = () => links.observed(KEY)?.status;
  world.actor(port, "test-actor-0", 2, sleeps(0.05));
  await until(() => (heard()?.checkpoint?.iteration ?? 0) >= 1, "a checkpoint");

  const filler = join(volume, "filler");
  const fill = () => assert.throws(() => writeFileSync(filler, Buffer.alloc(2 ** 28), { flag: "a" }), /ENOSPC/);
  fill();
  assert.equal(await learner.exit, EXIT_STATUS.volumeFull);
  assert.match(learner.termination ?? "", /^the disk of \S+ is full \(.*\)$/);
  assert.notEqual(heard()?.phase, "FAILED_RUN", "whether that is the run's end is not the learner's to say");
  fill();
  const again = start();
  assert.equal(await again.exit, EXIT_STATUS.volumeFull, "and again, until there is room");
  rmSync(filler);
  learner = start();
  await learner.listening;
  const done = world.summary().iterations;
  await until(() => (heard()?.checkpoint?.iteration ?? 0) > done, "a checkpoint of the next iteration");
  assert.ok(done >= 1);

  learner.child.kill("SIGTERM");
  assert.equal(await learner.exit, 0);
  mount("-o", "remount,ro", volume);
  const locked = start();
  assert.equal(await locked.exit, EXIT_STATUS.infrastructure);
  assert.match(locked.termination ?? "", /^.*read-only.*$/);
  mount("-o", "remount,rw", volume);
  learner = start();
  await learner.listening;
});
