import assert from "node:assert/strict";
import { test } from "node:test";
import { ADDRESS_FORM } from "../proto/address.ts";
import type { ClientState } from "./client.ts";
import { ActorError } from "./errors.ts";
import { lostResult } from "./execution.ts";
import { ActorMetrics, serveMetrics } from "./metrics.ts";

const state: ClientState = {
  ...{ connected: true, draining: false, running: 2, unacknowledged: 1, brokenStreams: 3 },
  ...{ busySeconds: 30, aliveSeconds: 80 },
};

function metricsOf(client: () => ClientState | undefined) {
  return new ActorMetrics({
    slots: 4,
    usableSlots: () => 3,
    client,
    isolationLevel: "landlock",
    tlsDirectory: "nowhere",
  });
}

async function scrape(metrics: ActorMetrics): Promise<Map<string, number>> {
  const rows = (await metrics.registry.metrics()).split("\n").filter((row) => row.startsWith("longrun_actor_"));
  return new Map(
    rows.map((row) => [
      row.slice("longrun_actor_".length, row.lastIndexOf(" ")),
      Number(row.slice(row.lastIndexOf(" ") + 1)),
    ]),
  );
}

test("actor metrics show slots, the stream, seconds and outcomes", async () => {
  const metrics = metricsOf(() => state);
  metrics.executed({ ...lostResult(""), outcome: "completed", durationSeconds: 1.5, cpuSeconds: 1 });
  metrics.executed({ ...lostResult(""), outcome: "timedOut", durationSeconds: 10, cpuSeconds: 2 });
  metrics.executed(lostResult("revoked"));
  metrics.broken();
  await scrape(metrics); // a second scrape adds nothing
  const values = await scrape(metrics);
  const expected = {
    'slots{state="busy"}': 2,
    'slots{state="free"}': 1,
    'slots{state="broken"}': 1,
    connected: 1,
    draining: 0,
    unacknowledged_results: 1,
    broken_streams_total: 3,
    busy_slot_seconds_total: 30,
    slot_seconds_total: 80,
    'executions_total{outcome="completed"}': 1,
    'executions_total{outcome="lost"}': 1,
    'executions_total{outcome="failed"}': 0,
    execution_duration_seconds_count: 2,
    execution_duration_seconds_sum: 11.5,
    execution_cpu_seconds_total: 3,
    sandbox_failures_total: 1,
    'info{isolation="landlock"}': 1,
  };
  for (const [series, value] of Object.entries(expected)) assert.equal(values.get(series), value, series);
});

test("actor metrics say that an actor without a client is not connected", async () => {
  const values = await scrape(metricsOf(() => undefined));
  assert.equal(values.get("connected"), 0);
  assert.equal(values.get('slots{state="free"}'), 3);
});

test("the metrics' server answers at /metrics alone", async () => {
  const server = await serveMetrics("127.0.0.1:0", metricsOf(() => state).registry);
  const get = (path: string, method = "GET") => fetch(`http://127.0.0.1:${server.port}${path}`, { method });
  try {
    const page = await get("/metrics");
    assert.match(page.headers.get("content-type") ?? "", /^text\/plain.*version=0\.0\.4/);
    assert.match(await page.text(), /longrun_actor_connected 1/);
    for (const [path, method] of [
      ["/", "GET"],
      ["/metrics", "POST"],
      ["/metrics/..", "GET"],
    ])
      assert.equal((await get(path!, method)).status, 404, `${method} ${path}`);
    const again = serveMetrics(`127.0.0.1:${server.port}`, metricsOf(() => state).registry);
    await assert.rejects(
      again,
      (error) => error instanceof ActorError && /^--metrics-listen 127.*EADDRINUSE/.test(error.message),
    );
  } finally {
    server.close();
  }
});

for (const listen of ["9400", "127.0.0.1:", "127.0.0.1:99999", ""])
  test(`the metrics' server refuses to listen on '${listen}'`, async () => {
    const refused = serveMetrics(listen, metricsOf(() => state).registry);
    const message = `--metrics-listen ${listen}: ${ADDRESS_FORM}`;
    await assert.rejects(refused, { code: "arguments", message });
  });
