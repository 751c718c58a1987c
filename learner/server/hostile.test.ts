/**
 * Actors that send anything in any order to a real server (gRPC over TLS, each with its own certificate, a store on disk), while an honest
 * actor works. After each sequence the promises below must hold (`World.check`).
 *
 * `npm test` runs this for a few seconds. LONGRUN_FUZZ_SECONDS=3600 runs it for an hour. A failure prints the sequence and its seed;
 * LONGRUN_FUZZ_SEED=SEED starts with that seed and searches for a shorter sequence that fails.
 */
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { PROTOCOL_VERSION } from "../../proto/service.ts";
import { HONEST, HOSTILE, Stream, World } from "./hostile-world.fixture.ts";
import { type Attempt, closeActors, within } from "./server.fixture.ts";

const SECONDS = Number(process.env.LONGRUN_FUZZ_SECONDS ?? 5);
const SEED = Number(process.env.LONGRUN_FUZZ_SEED ?? Date.now() % 2 ** 31);

type Step = { text: string; run(world: World): void | Promise<void> };

const number = fc.oneof(
  { weight: 3, arbitrary: fc.double({ min: 0, max: 100, noNaN: true }) },
  fc.constantFrom(Number.NaN, -1, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1.7e308, 1e15, -0),
);
/** Returns whether the number of seconds is valid. */
const isFine = (value: number) => value >= 0 && value <= 256e9;
const pick = fc.nat({ max: 1000 });
const level = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom("none", "landlock", "namespaces") },
  fc.constantFrom("", "x".repeat(300)),
);
const slots = fc.oneof({ weight: 8, arbitrary: fc.constantFrom(1, 4, 256) }, fc.constantFrom(0, 1e6));
const who = fc.nat({ max: 3 });

/** Returns mostly an attempt that this actor leased; otherwise one of another actor, or one that does not exist. */
function attemptOf(world: World, { actor }: Stream, index: number): Attempt {
  const own = [...world.leased.values()].filter((it) => it.actor === actor.name);
  if (own.length > 0 && index % 3 > 0) return own[own.length - 1 - (index % Math.min(own.length, 4))]!;
  const all = [...world.leased.values()];
  const known = all[index % (all.length + 1)];
  return known ?? { execution: `s${index}`, number: 1 + (index % 3), fence: String(index) };
}

/** Returns a step on one of the streams; without a stream it does nothing. */
const onStream = (text: string, index: number, act: (stream: Stream, world: World) => void | Promise<void>): Step => ({
  text: `${index}: ${text}`,
  run: (world) => {
    const stream = world.streams.at(-1 - (index % Math.max(1, world.streams.length)));
    return stream && act(stream, world);
  },
});

const connect = fc.record({ mine: pick, claim: pick, level, slots }).map((it): Step => {
  const certificate = HOSTILE[it.mine % 2]!;
  const claim = it.claim % 8 === 0 ? HONEST : it.claim % 8 === 1 ? HOSTILE[0]! : certificate;
  return {
    text: `connect as ${claim} with the certificate of ${certificate}, level '${it.level.slice(0, 9)}', ${it.slots} slots`,
    run: async (world) => {
      const stream = new Stream(world, certificate);
      world.streams.push(stream);
      const fine =
        claim === certificate &&
        ["none", "landlock", "namespaces"].includes(it.level) &&
        it.slots >= 1 &&
        it.slots <= 256;
      const hello = { protocolVersion: PROTOCOL_VERSION, actor: claim, isolationLevel: it.level, slots: it.slots };
      stream.send({ hello }, fine ? "passes" : "breaks");
      if (!fine) return;
      for (const older of world.streams) if (older !== stream && older.actor.name === certificate) older.over = true;
      stream.greeted = true;
      await within(stream.actor.next("welcome"), "a welcome");
    },
  };
});
/** Announces a submission for each leased attempt, starts each upload, and leaves it unfinished. */
function beginUploads(stream: Stream, world: World): void {
  const submission = { bytes: 90_000, compressedBytes: 90_000, chunks: 5, sha256: "0".repeat(64) };
  for (const attempt of world.leased.values()) {
    if (attempt.actor !== stream.actor.name) continue;
    stream.send({ result: { attempt, outcome: 1, isolationLevel: "none", submission } }, "depends");
    stream.send({ chunk: { attempt, index: 0, data: Buffer.alloc(50_000) } }, "depends");
  }
}

/** An actor that keeps the protocol, has four slots, and gets programs. */
const join = fc.tuple(pick, fc.boolean()).map(
  ([mine, hoards]): Step => ({
    text: `${HOSTILE[mine % 2]} joins${hoards ? " and begins uploads" : ""}`,
    run: async (world) => {
      const certificate = HOSTILE[mine % 2]!;
      const stream = new Stream(world, certificate);
      for (const older of world.streams) if (older.actor.name === certificate) older.over = true;
      world.streams.push(stream);
      await stream.actor.hello({ slots: 4 });
      stream.greeted = true;
      stream.actor.ready(4);
      world.add(4);
      for (let waited = 0; waited < 30 && !stream.actor.has("lease"); waited += 2) await sleep(2);
      if (!hoards) return;
      beginUploads(stream, world);
      await sleep(10);
      world.checkUploads();
    },
  }),
);
const silent = pick.map(
  (mine): Step => ({
    text: "connect without a hello",
    run: (world) => {
      // The learner may end the oldest of several such streams.
      const stream = new Stream(world, HOSTILE[mine % 2]!);
      stream.fate = "depends";
      world.streams.push(stream);
    },
  }),
);
const hello = fc.tuple(who, pick).map(([index, claim]) => {
  const actor = [HONEST, ...HOSTILE][claim % 3]!;
  return onStream(`another hello, as ${actor}`, index, (stream, world) => {
    const introduces = !stream.greeted && actor === stream.actor.name;
    const hello = { protocolVersion: PROTOCOL_VERSION, actor, isolationLevel: "none", slots: 1 };
    stream.send({ hello }, introduces ? "depends" : "breaks");
    if (!introduces || stream.over) return;
    stream.greeted = true;
    for (const older of world.streams) if (older !== stream && older.actor.name === actor) older.over = true;
  });
});
const ready = fc
  .tuple(who, fc.constantFrom(0, 1, 4, 4, 4, 256, 256, 257))
  .map(([index, freeSlots]) =>
    onStream(`ready ${freeSlots}`, index, (stream) =>
      stream.send({ ready: { freeSlots } }, stream.greeted && freeSlots <= 256 ? "passes" : "breaks"),
    ),
  );
const heartbeat = fc
  .tuple(who, fc.array(pick, { maxLength: 4 }), number, number, number)
  .map(([index, attempts, elapsed, busy, alive]) =>
    onStream(`heartbeat ${attempts} ${elapsed} ${busy} ${alive}`, index, (stream, world) => {
      const running = attempts.map((it) => ({ attempt: attemptOf(world, stream, it), elapsedSeconds: elapsed }));
      const fine =
        [busy, alive, ...(running.length > 0 ? [elapsed] : [])].every(isFine) &&
        running.every(({ attempt }) => attempt.fence !== "");
      stream.send(
        { heartbeat: { running, busySeconds: busy, aliveSeconds: alive } },
        fine && stream.greeted ? "depends" : "breaks",
      );
    }),
  );
const result = fc
  .record({
    index: who,
    attempt: pick,
    outcome: fc.nat({ max: 8 }),
    duration: number,
    cpu: number,
    at: number,
    level,
    bytes: fc.constantFrom(0, 50, 90_000, 2 ** 31),
    chunks: fc.nat({ max: 5 }),
  })
  .map((it) =>
    onStream(`result ${JSON.stringify(it)}`, it.index, (stream, world) => {
      const submission =
        it.bytes === 0
          ? undefined
          : { bytes: it.bytes, compressedBytes: it.bytes, chunks: it.chunks, sha256: "0".repeat(64) };
      const markers = [{ name: "loaded data", value: "v".repeat(5000), atSeconds: it.at }];
      const header = {
        attempt: attemptOf(world, stream, it.attempt),
        outcome: it.outcome,
        durationSeconds: it.duration,
        cpuSeconds: it.cpu,
        markers,
        isolationLevel: it.level,
        submission,
      };
      stream.send({ result: header }, "depends");
    }),
  );
const chunk = fc
  .tuple(who, pick, fc.nat({ max: 3 }), fc.constantFrom(0, 10, 50_000, 300_000))
  .map(([index, attempt, at, size]) =>
    onStream(`chunk ${at} of ${size}`, index, (stream, world) =>
      stream.send(
        { chunk: { attempt: attemptOf(world, stream, attempt), index: at, data: Buffer.alloc(size) } },
        "depends",
      ),
    ),
  );
const upload = fc.tuple(who, pick, fc.boolean()).map(([index, attempt, corrupt]) =>
  onStream(`upload${corrupt ? ", damaged" : ""}`, index, (stream, world) => {
    if (stream.over) return;
    stream.fate = stream.fate === "breaks" ? "breaks" : "depends";
    const damage = ({ chunks }: { chunks: Uint8Array[] }) => {
      chunks[0] = Buffer.alloc(chunks[0]!.length);
    };
    stream.actor.handIn(attemptOf(world, stream, attempt), {
      submission: Buffer.from(`id\n${attempt}\n`.repeat(5000)),
      ...(corrupt && { corrupt: damage }),
    });
  }),
);
const hoard = who.map((index) => onStream("half uploads", index, beginUploads));
const leave = fc.tuple(who, fc.constantFrom("vanish", "end", "drained")).map(([index, how]) =>
  onStream(how, index, (stream) => {
    if (how === "vanish") stream.actor.vanish();
    else if (how === "end") stream.actor.end();
    else stream.actor.send({ drained: {} });
    stream.over = true;
  }),
);
const flood = who.map((index) =>
  onStream("flood", index, (stream) => {
    for (let sent = 0; sent < 4000; sent++) stream.send({ heartbeat: { running: [] } }, "breaks");
  }),
);
const more = fc
  .nat({ max: 12 })
  .map((count): Step => ({ text: `${count} programs`, run: (world) => world.add(count) }));
const pause = fc
  .nat({ max: 20 })
  .map((milliseconds): Step => ({ text: `pause ${milliseconds}`, run: () => sleep(milliseconds) }));

const step = fc
  .oneof(
    { weight: 3, arbitrary: connect },
    { weight: 4, arbitrary: join },
    { weight: 5, arbitrary: ready },
    { weight: 4, arbitrary: heartbeat },
    { weight: 6, arbitrary: result },
    { weight: 5, arbitrary: chunk },
    { weight: 4, arbitrary: upload },
    { weight: 3, arbitrary: hoard },
    { weight: 2, arbitrary: flood },
    { weight: 3, arbitrary: more },
    { weight: 3, arbitrary: pause },
    { weight: 2, arbitrary: leave },
    ...[hello, silent].map((arbitrary) => ({ weight: 1, arbitrary })),
  )
  .map((it) => ({ ...it, [fc.toStringMethod]: () => it.text }));

after(closeActors);

test("the server survives any messages of hostile actors and keeps the honest actor's work", {
  timeout: (SECONDS + 120) * 1000,
}, async () => {
  const property = fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40, size: "max" }), async (steps) => {
    const world = new World();
    await world.start();
    try {
      for (const { run } of steps) await run(world);
      await world.check();
    } finally {
      await world.stop();
    }
  });
  // Shrinking a sequence takes minutes, so only on request.
  const endOnFailure = process.env.LONGRUN_FUZZ_SEED === undefined;
  const until = performance.now() + SECONDS * 1000;
  for (let seed = SEED; performance.now() < until; seed++)
    await fc.assert(property, { numRuns: 10, seed, endOnFailure });
});
