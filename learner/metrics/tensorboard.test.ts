import assert from "node:assert/strict";
import { readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { writeMadeUpRun } from "../report/made-up-run.fixture.ts";
import { scratchFolder } from "../store/store.fixture.ts";
import type { IterationMetrics } from "./iteration.ts";
import { readMetrics } from "./jsonl.ts";
import { crc32c, maskedCrc32c, RECORDS, SECTIONS, scalarsOf, TensorBoardFile } from "./tensorboard.ts";

interface Decoded {
  wallTime: number;
  step: number;
  version?: string;
  start?: boolean;
  scalars: Map<string, number>;
}

/** Yields field number and content of each field of a protobuf message: a number, or bytes. */
function* fieldsOf(bytes: Buffer): Generator<[number, number | Buffer]> {
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]!;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  };
  const taken = (length: number) => {
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.length) {
    const key = varint();
    const wire = key & 7;
    assert.ok([0, 1, 2, 5].includes(wire), `wire type ${wire}`);
    const value =
      wire === 0
        ? varint()
        : wire === 1
          ? taken(8).readDoubleLE()
          : wire === 5
            ? taken(4).readFloatLE()
            : taken(varint());
    yield [key >>> 3, value];
  }
}

function decodeEvent(bytes: Buffer): Decoded {
  const event: Decoded = { wallTime: 0, step: 0, scalars: new Map() };
  for (const [field, value] of fieldsOf(bytes)) {
    if (field === 1) event.wallTime = value as number;
    if (field === 2) event.step = value as number;
    if (field === 3) event.version = (value as Buffer).toString();
    if (field === 7) event.start = Object.fromEntries(fieldsOf(value as Buffer))[1] === 1;
    if (field !== 5) continue;
    for (const [, summary] of fieldsOf(value as Buffer)) {
      const { 1: tag, 2: scalar } = Object.fromEntries(fieldsOf(summary as Buffer));
      assert.equal(typeof scalar, "number", `${tag}: 0 is written, too`);
      event.scalars.set((tag as Buffer).toString(), scalar as number);
    }
  }
  return event;
}

const filesIn = (directory: string) => readdirSync(directory).sort((a, b) => a.length - b.length || (a < b ? -1 : 1));

/** Returns the events of all files in order, and checks the checksums. */
function eventsIn(directory: string): Decoded[] {
  const events: Decoded[] = [];
  for (const name of filesIn(directory)) {
    assert.match(name, /^events\.out\.tfevents\.\d+\.longrun$/);
    const bytes = readFileSync(join(directory, name));
    for (let at = 0; at < bytes.length; ) {
      const length = Number(bytes.readBigUInt64LE(at));
      assert.equal(bytes.readUInt32LE(at + 8), maskedCrc32c(bytes.subarray(at, at + 8)));
      const data = bytes.subarray(at + 12, at + 12 + length);
      assert.equal(bytes.readUInt32LE(at + 12 + length), maskedCrc32c(data));
      events.push(decodeEvent(data));
      at += length + 16;
    }
  }
  return events;
}

const stepsIn = (directory: string) =>
  eventsIn(directory)
    .filter(({ scalars }) => scalars.size > 0)
    .map(({ step }) => step);
const startsIn = (directory: string) => eventsIn(directory).flatMap(({ start, step }) => (start ? [step] : []));

describe("TensorBoard", () => {
  let lines: IterationMetrics[];
  before(async () => {
    const run = scratchFolder();
    await writeMadeUpRun(run, { iterations: 5, finished: 5, state: "succeeded", guards: ["constant"] });
    lines = await readMetrics(join(run, "metrics.jsonl"));
  });
  const folder = () => join(scratchFolder(), "tensorboard");
  const write = async (directory: string, known: IterationMetrics[], more: IterationMetrics[]) => {
    const file = await TensorBoardFile.open(directory, known);
    for (const line of more) await file.append(line);
    await file.close();
  };

  test("checksums equal those of RFC 3720 and of TensorFlow's own files", () => {
    const cases: [Uint8Array, number][] = [
      [Buffer.from("123456789"), 0xe3069283],
      [new Uint8Array(32), 0x8a9136aa],
      [new Uint8Array(32).fill(0xff), 0x62a8ab43],
      [Uint8Array.from({ length: 32 }, (_, i) => i), 0x46dd794e],
    ];
    for (const [bytes, crc] of cases) assert.equal(crc32c(bytes), crc);
    // TensorFlow's files begin with 18 00 00 00 00 00 00 00 a3 7f 4b 22: the length 24 and its checksum.
    assert.equal(maskedCrc32c(Buffer.from("1800000000000000", "hex")), 0x224b7fa3);
  });

  test("every number of a line is a scalar, under its iteration and time", async () => {
    const directory = folder();
    await write(directory, [], lines);
    const [version, start, ...events] = eventsIn(directory);
    assert.equal(version!.version, "brain.Event:2");
    assert.deepEqual([start!.start, start!.step], [true, 1]);
    assert.deepEqual(
      events.map(({ step, wallTime }) => [step, wallTime]),
      lines.map(({ iteration, wallTime }) => [iteration, Date.parse(wallTime) / 1000]),
    );
    for (const [index, { scalars }] of events.entries()) {
      const line = lines[index]!;
      assert.equal(scalars.get("score/meanScore"), Math.fround(line.meanScore!));
      assert.equal(scalars.get("policy/kl"), Math.fround(line.kl!));
      assert.equal(scalars.get("outcomes/completed"), line.outcomes.completed);
      assert.equal(scalars.get("markers/loaded data"), Math.fround(line.markers["loaded data"]!));
      assert.equal(scalars.get("tasks/diamonds/bestScoreSoFar"), Math.fround(line.tasks.diamonds!.bestScoreSoFar!));
      assert.equal(scalars.size, scalarsOf(line).length);
      assert.ok(!scalars.has("critic/criticLearningRate"), "null is no number");
    }
  });

  test("every field of a line is a scalar or is left out on purpose", () => {
    const known: string[] = [...Object.values(SECTIONS).flat(), ...RECORDS];
    // Fields that identify the line, and fields that are no numbers.
    const others = ["iteration", "lineage", "wallTime", "tasks", "durationHistogram"];
    others.push("noSignal", "importanceDeviates", "mostlyClamped");
    assert.deepEqual(
      Object.keys(lines[0]!)
        .filter((field) => !known.includes(field))
        .sort(),
      others.sort(),
    );
    assert.equal(new Set(known).size, known.length);
  });

  test("a resumed run repeats no iteration and leaves out iterations that were taken back", async () => {
    const directory = folder();
    await write(directory, [], lines);
    await write(directory, lines.slice(0, 2), lines.slice(2, 4));
    assert.deepEqual(stepsIn(directory), [1, 2, 3, 4]);
    assert.deepEqual(startsIn(directory), [1, 3], "TensorBoard forgets iterations from 3 on");
    await write(directory, lines.slice(0, 4), []);
    assert.equal(filesIn(directory).length, 2, "no file without an iteration");
    await write(directory, lines.slice(0, 1), lines.slice(1));
    assert.deepEqual(stepsIn(directory), [1, 2, 3, 4, 5]);
    assert.deepEqual(startsIn(directory), [1, 3, 2]);
    assert.equal(filesIn(directory).length, 3, "no file is removed, because TensorBoard may read it");
  });

  test("a run that starts over keeps no earlier events, and a run without training has no folder", async () => {
    const directory = folder();
    await write(directory, lines, []);
    await write(directory, [], []);
    assert.deepEqual(stepsIn(directory), []);
    await write(directory, [], lines.slice(0, 1));
    assert.deepEqual(stepsIn(directory), [1]);
    const never = folder();
    await write(never, [], []);
    assert.throws(() => readdirSync(never), { code: "ENOENT" });
  });

  for (const [what, damage] of [
    ["a torn record", (bytes: Buffer) => bytes.subarray(0, -1)],
    ["a torn frame", (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(7)])],
    ["zeros", (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(100)])],
    ["a flipped bit", (bytes: Buffer) => bytes.with(-20, bytes.at(-20)! ^ 1)],
  ] as const)
    test(`a run after a crash removes partial records and writes the lost ones: ${what}`, async () => {
      const directory = folder();
      await write(directory, [], lines.slice(0, 3));
      const path = join(directory, filesIn(directory)[0]!);
      writeFileSync(path, damage(readFileSync(path)));
      // The store has one line more than was written.
      await write(directory, lines.slice(0, 4), lines.slice(4));
      assert.deepEqual(stepsIn(directory), [1, 2, 3, 4, 5]);
    });

  test("a new file sorts after the older ones although the clock went back", async () => {
    const directory = folder();
    await write(directory, [], lines.slice(0, 1));
    renameSync(join(directory, filesIn(directory)[0]!), join(directory, "events.out.tfevents.9999999998.longrun"));
    await write(directory, lines.slice(0, 1), lines.slice(1));
    assert.deepEqual(filesIn(directory).at(-1), "events.out.tfevents.9999999999.longrun");
  });

  test("a folder that cannot be made is refused in one line", async () => {
    const path = join(scratchFolder(), "file");
    writeFileSync(path, "");
    const refused = TensorBoardFile.open(join(path, "tensorboard"), lines);
    await assert.rejects(refused, {
      code: "metrics-file",
      message: /tensorboard: cannot write the event file: ENOTDIR/,
    });
  });
});
