/** Tests the first frame of a zygote that a program controls. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { deep, E, F, frame, HELLO, Liar, type Lie, S, startFor, X } from "./liar.fixture.ts";

describe("a hello", () => {
  const refused: [name: string, hello: Buffer | Lie, message: RegExp][] = [
    ["that is no JSON", frame("H", deep), /first frame cannot be read/],
    ["that is no object", frame("H", "null"), /first frame cannot be read: JSON that is no object/],
    ["with words in place of numbers", frame("H", { ...HELLO, landlockAbi: "7".repeat(9999) }), /an amount: 7{50}$/],
    ["above the largest frame", Buffer.from("H\x00\x20\x00\x00", "latin1"), /frame of 2097152 bytes/],
    ["that is another frame", S, /unexpected first frame "S"/],
    ["that never comes", () => {}, /was not ready within 0.3 s/],
    ["that stops half-way", frame("H", HELLO).subarray(0, 30), /was not ready within 0.3 s/],
    ["in a connection that ends", (connection) => connection.end(), /did not start: its connection ended/],
  ];
  for (const [name, hello, message] of refused)
    test(`${name} is refused in one short line`, async (t) => {
      const liar = new Liar(hello, () => {});
      t.after(() => liar.close());
      await assert.rejects(liar.start({ startSeconds: 0.3 }), (error: Error & { code: string }) => {
        assert.equal(error.code, "sandbox", error.stack);
        assert.match(error.message, message);
        assert.ok(error.message.length < 700 && !error.message.includes("\n"));
        return true;
      });
    });

  test("with 100,000 entries or with wrong types keeps only what is allowed", async (t) => {
    const lists: unknown[] = [
      Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`n${index}`, "1"])),
      Array.from({ length: 100_000 }, () => "a"),
      "x".repeat(900_000),
      [[[]], { toString: 1 }, null, 7, JSON.parse('{"__proto__":"a"}')],
      1e308,
      null,
    ];
    for (const list of lists)
      for (const name of ["packages", "versions", "warm", "gpus"]) {
        const liar = new Liar(frame("H", { ...HELLO, [name]: list }), (it) => it.write(Buffer.concat([S, X, E, F])));
        const sandbox = await startFor(t, liar);
        const { packages, versions, warm, gpus } = sandbox.info;
        assert.ok(Object.keys(packages).length <= 2048 && Object.keys(versions).length <= 32);
        assert.ok(warm.length <= 64 && gpus.length <= 64);
        for (const text of [warm, gpus, Object.values(packages)].flat())
          assert.ok(typeof text === "string" && text.length <= 100);
        if (typeof list === "string") assert.deepEqual(Object.keys(packages), [], "text is no list of packages");
      }
  });

  test("that arrives byte by byte takes no more memory than its bytes", async (t) => {
    const hello = frame("H", { ...HELLO, packages: { filler: "x".repeat(3000) } });
    const liar = new Liar(
      async (connection) => {
        for (const byte of hello) {
          connection.write(Buffer.from([byte]));
          await nextTurn();
        }
      },
      () => {},
    );
    const sandbox = await startFor(t, liar);
    assert.equal(sandbox.info.packages.filler!.length, 100);
  });

  test("that is too large is cut to the allowed size", async (t) => {
    const entries = (count: number, repeats: number, value: string) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`n${i}`.repeat(repeats), value]));
    const much = { packages: entries(5000, 1, "1"), versions: entries(400, 50, "v".repeat(999)) };
    const liar = new Liar(frame("H", { ...HELLO, ...much }), () => {});
    const sandbox = await startFor(t, liar);
    const { packages, versions } = sandbox.info;
    assert.deepEqual([Object.keys(packages).length, Object.keys(versions).length], [2048, 32]);
    for (const [name, value] of Object.entries(versions)) assert.ok(name.length <= 100 && value.length <= 100);
  });
});
