/** A learner that may not ask the cluster's DNS servers. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { writeRunCertificates } from "../../proto/certificates.ts";
import { until } from "../../test/until.ts";
import { Generators, type GeneratorsOptions } from "./generators.ts";

/** Starts generators whose first look-up ends with this code, and returns them after it. Further ones do not end. */
async function generatorsAfter(t: { after(stop: () => void): void }, code: string) {
  const folder = mkdtempSync(join(tmpdir(), "longrun-unresolved-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const tls = await writeRunCertificates(folder, { validSeconds: 600 });
  const stopping = new AbortController();
  let lookups = 0;
  let ticks = 0;
  const generators = new Generators({
    ...{ urls: [new URL("https://run-generators.team.svc:8443")], tlsDirectory: tls.learner, vocabSize: 1 },
    ...{
      signal: stopping.signal,
      log: { info() {}, warn() {} },
      notice() {},
      noGeneratorSeconds: 600,
      directory: folder,
      onChange: () => (ticks += 1),
    },
    async addressesOf({ hostname }: URL) {
      lookups += 1;
      if (lookups > 1) await new Promise(() => {});
      throw Object.assign(new Error(`getaddrinfo ${code} ${hostname}`), { code });
    },
  } as unknown as GeneratorsOptions);
  t.after(() => generators.close());
  await until(() => lookups > 0, "the look-up");
  await setImmediate(); // the look-up has failed
  return { generators, lookups: () => lookups, ticks: () => ticks };
}
const statusOf = async (...how: Parameters<typeof generatorsAfter>) =>
  (await generatorsAfter(...how)).generators.status.generators;

test("A name that no DNS server resolves is a generator that is not used, with the reason", async (t) => {
  const [found] = await statusOf(t, "EAI_AGAIN");
  assert.deepEqual(found, {
    ...{ address: "run-generators.team.svc:8443", ready: false, running: 0 },
    notUsedBecause: "its name does not resolve: getaddrinfo EAI_AGAIN run-generators.team.svc",
  });
});

test("A headless Service without pods has no address, which is no fault", async (t) => {
  assert.deepEqual(await statusOf(t, "ENOTFOUND"), []);
});

test("While the name is looked up again, which takes seconds where DNS is blocked, the reason stays, and known generators are looked after", async (t) => {
  const { generators, lookups, ticks } = await generatorsAfter(t, "EAI_AGAIN");
  const now = performance.now.bind(performance);
  t.mock.method(performance, "now", () => now() + 10_000);
  await until(() => lookups() > 1, "the second look-up");
  assert.equal(generators.status.generators.length, 1);
  const before = ticks();
  await until(() => ticks() > before, "a further look at the known generators");
  assert.equal(lookups(), 2, "one look-up at a time");
});
