import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { runOf } from "../operator/run.fixture.ts";
import { notifyWebhook } from "./notify.ts";

describe("the webhook of a run on this machine", () => {
  let server: Server;
  let root: string;
  let answers: number[];
  let bodies: { id: string; type: string; source: string; data: object }[];
  before(async () => {
    root = mkdtempSync(join(tmpdir(), "longrun-notify-"));
    server = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      bodies.push(JSON.parse(body));
      const status = answers.shift();
      if (status !== undefined) response.writeHead(status).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  after(() => {
    server.closeAllConnections();
    server.close();
    rmSync(root, { recursive: true });
  });

  /** @param timeoutSeconds short for a receiver that hangs; an answer may take its time */
  async function notify(
    state: string,
    given: number[],
    { since = 0, signal = new AbortController().signal, timeoutSeconds = 60 } = {},
  ) {
    const directory = join(root, "quick-1");
    mkdirSync(directory, { recursive: true });
    const times = { startedAt: "2026-01-01T00:00:00.000Z", updatedAt: "2026-01-01T01:00:00.000Z" };
    writeFileSync(join(directory, "summary.json"), JSON.stringify({ state, message: "why", ...times }));
    const line = { iteration: 3, bestScoreSoFar: 281.3, meanScore: null, validFraction: 0.5 };
    writeFileSync(join(directory, "metrics.jsonl"), `${JSON.stringify(line)}\n`);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/T0P-SECRET`;
    const webhook = { url, timeoutSeconds, maxAttempts: 3, backoffSeconds: 0.1 };
    const said: string[] = [];
    [answers, bodies] = [given, []];
    const run = runOf({ notifications: { webhook }, stopping: { iterations: 12 } });
    await notifyWebhook(run, directory, { since, signal, say: (text) => said.push(text) });
    assert.doesNotMatch(said.join(), /T0P|127\.0/);
    return { said, directory };
  }

  test("It reports a run that has succeeded", async () => {
    const { said, directory } = await notify("succeeded", [200]);
    assert.deepEqual(said, ["The webhook was delivered: the receiver answered 200"]);
    const [{ id, type, source, data }] = bodies as [(typeof bodies)[number]];
    assert.deepEqual([id, source], ["quick-2026-01-01T00:00:00.000Z-Succeeded", "/runs/quick-1"]);
    assert.equal(type, "dev.longrun.trainingrun.succeeded");
    assert.deepEqual(data, {
      name: "quick",
      directory,
      task: "diamonds",
      phase: "Succeeded",
      message: "why",
      iteration: 3,
      iterations: 12,
      ...{ startTime: "2026-01-01T00:00:00.000Z", completionTime: "2026-01-01T01:00:00.000Z" },
      score: { best: 281.3, validFraction: 0.5 },
    });
  });

  test("It reports a run that has failed, again until the receiver accepts", async () => {
    const { said } = await notify("failed", [500, 204]);
    assert.deepEqual(said, [
      "The webhook: the receiver answered 500; once more in 0.1 s",
      "The webhook was delivered: the receiver answered 204",
    ]);
    assert.deepEqual(
      bodies.map(({ type }) => type),
      ["dev.longrun.trainingrun.failed", "dev.longrun.trainingrun.failed"],
    );
  });

  test("A webhook that hangs is given up", async () => {
    const { said } = await notify("succeeded", [], { timeoutSeconds: 0.3 });
    assert.equal(said.at(-1), "The webhook was not delivered, 3 of 3 attempts: no answer within 0.3 s");
    assert.equal(bodies.length, 3);
  });

  test("It reports neither a stopped run nor an earlier end", async () => {
    assert.deepEqual((await notify("stopped", [200])).said, []);
    assert.deepEqual((await notify("succeeded", [200], { since: Date.now() + 60_000 })).said, []);
    assert.deepEqual(bodies, []);
  });

  test("Ctrl-C ends it", async () => {
    const { said } = await notify("succeeded", [200], { signal: AbortSignal.abort() });
    assert.deepEqual(said, ["The webhook was not delivered, 1 of 3 attempts: interrupted"]);
  });
});
