/** Tests the result of an execution: its times, its report, and who is to blame for a failure. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { execute } from "./execution.ts";
import { E, END, F, frame, HELLO, Liar, lied, REQUEST, S } from "./liar.fixture.ts";
import { DEFAULT_LIMITS } from "./limits.ts";

const PATIENT = { programStartSeconds: 5, killSeconds: 5, submissionSeconds: 5 };
const PATIENTLY = { ...REQUEST, limits: DEFAULT_LIMITS };

/** Returns the result of a program whose zygote answers with these frames after `after` milliseconds. */
const answered = (answer: Buffer[], after = 0) =>
  lied((connection) => setTimeout(() => connection.write(Buffer.concat(answer)), after), PATIENTLY, PATIENT);

test("an execution that follows the protocol has the result and the CPU time that the zygote reports", async () => {
  const { result } = await answered([S, frame("X", { ...END, cpuSeconds: 0.1 }), E, F], 100); // no processor works 0.1 s in less
  assert.deepEqual([result.outcome, result.cpuSeconds, result.sandboxBroke], ["completed", 0.1, false]);
});

test("a duration is the zygote's count, and at most the time since the request", async () => {
  const durationOf = async (seconds: number) => {
    const { result, seconds: since } = await answered([S, frame("X", { ...END, seconds }), E, F], 400);
    return { duration: result.durationSeconds, since };
  };
  const none = await durationOf(0);
  assert.ok(none.duration < 0.1, `${none.duration}: start and end arrive together`);
  const counted = await durationOf(0.3);
  assert.equal(counted.duration, 0.3);
  const lie = await durationOf(1000);
  assert.ok(lie.duration >= 0.39 && lie.duration <= lie.since, `${lie.duration} of ${lie.since}`);
});

test("an invalid report and an unknown reason change nothing of an execution's result", async () => {
  const hostile = {
    ...END,
    status: 1,
    killedFor: "__proto__",
    report: '{"exception":"A B","line":-4,"memory":1}',
    __proto__: null,
  };
  const { result } = await answered([S, frame("X", hostile), E, F]);
  assert.deepEqual([result.outcome, result.detail], ["failed", "exit status 1"]);
});

describe("blame for a failure", () => {
  test("a sandbox that ends during a program is to blame; one that was stopped or never started it is not", async (t) => {
    const liar = new Liar(frame("H", HELLO), (connection) => connection.write(S));
    t.after(() => liar.close());
    const start = () => liar.start({ deadlines: PATIENT });
    const broken = await start();
    const ended = execute(broken, PATIENTLY);
    setTimeout(() => broken.giveUp("it was killed"), 20);
    assert.deepEqual([(await ended).outcome, (await ended).sandboxBroke], ["lost", true]);
    await broken.stop();

    const stopped = await start();
    const result = execute(stopped, PATIENTLY);
    setTimeout(() => stopped.stop(), 20);
    assert.deepEqual([(await result).outcome, (await result).sandboxBroke], ["lost", false]);

    const { result: early } = await answered([frame("H", { error: "no disk" })]);
    assert.deepEqual([early.outcome, early.sandboxBroke], ["lost", false]);
  });

  test("a full disk is not the program's fault: the attempt is lost and the sandbox is started again", async () => {
    const failed = { ...END, status: 1, diskFull: true, report: '{"exception":"OSError","line":3,"memory":false}' };
    const { sandbox, result } = await answered([S, frame("X", failed), E, F]);
    assert.equal(result.outcome, "lost");
    assert.match(result.detail, /disk .* is full/);
    assert.match(sandbox.fault!.message, /disk .* is full/);
    assert.equal(result.sandboxBroke, false);
    const done = { ...failed, status: 0 };
    const completed = await answered([S, frame("X", done), E, F]);
    assert.equal(completed.result.outcome, "completed");
  });
});
