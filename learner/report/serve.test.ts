import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Registry } from "prom-client";
import type { StatusMessage } from "../../proto/service.ts";
import { serveMetrics } from "../metrics/http.ts";
import { Phase } from "../server/status.ts";
import { reportPage } from "./serve.ts";

const TRAINING: StatusMessage = {
  phase: Phase.EXECUTING,
  ...{ iteration: 3, iterations: 12, phaseDone: 5, phaseTotal: 48 },
  executions: { running: 2, queued: 7 },
  actors: [{ connected: true }, { connected: false }],
};

describe("the report over HTTP", () => {
  let directory: string;
  let status: StatusMessage;
  let server: Awaited<ReturnType<typeof serveMetrics>>;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), "longrun-report-"));
    const fine = () => ({ ok: true, message: "" });
    server = await serveMetrics(
      "127.0.0.1:0",
      new Registry(),
      { live: fine, ready: fine },
      {
        "/report": (query) => reportPage(directory, status, query, new Date("2026-01-02T03:04:05Z")),
      },
    );
  });
  after(async () => {
    await server.close();
    await rm(directory, { recursive: true });
  });
  const get = (path = "/report", method = "GET") => fetch(`http://127.0.0.1:${server.port}${path}`, { method });

  test("shows a page that loads again until there is a report", async () => {
    status = { phase: Phase.STARTING };
    const response = await get();
    assert.equal(response.headers.get("refresh"), "10");
    assert.match(
      await response.text(),
      /03:04:05 UTC · starts · loaded every 10 s[\s\S]*appears when the first iteration/,
    );
  });

  test("shows the report on the disk below the run's current state", async () => {
    await writeFile(join(directory, "report.html"), "<html>\n<body>\n<main>&#60;body&#62; $& the report</main>");
    status = TRAINING;
    const page = await (await get()).text();
    assert.match(
      page,
      /^<html>\n<body>\n<div style="[^"]*">03:04:05 UTC · iteration 3 of 12 · programs run \(5 of 48\) · 2 executions run, 7 wait · 1 actors · /,
    );
    assert.ok(page.endsWith("</div>\n<main>&#60;body&#62; $& the report</main>"), page);
  });

  test("forbids scripts, frames, guesses at its type, and caches", async () => {
    const { headers } = await get();
    const policy = headers.get("content-security-policy")!.split("; ");
    for (const directive of ["default-src 'none'", "frame-ancestors 'none'", "form-action 'none'", "sandbox"])
      assert.ok(policy.includes(directive), directive);
    assert.doesNotMatch(policy.join(), /script|allow-|\*|https?:/);
    assert.equal(headers.get("x-content-type-options"), "nosniff");
    assert.equal(headers.get("content-type"), "text/html; charset=utf-8");
    assert.equal(headers.get("cache-control"), "no-store");
  });

  test("shows the learner's messages as text", async () => {
    status = { ...TRAINING, message: "<script>alert(1)</script>" };
    assert.match(await (await get()).text(), /&#60;script&#62;alert\(1\)&#60;\/script&#62;/);
  });

  const REFRESHES: [query: string, phase: number, header: string | null][] = [
    ["", Phase.TRAINING, "10"],
    ["?refresh=3", Phase.TRAINING, "3"],
    ["?refresh=0", Phase.TRAINING, null],
    ["?refresh=99999", Phase.TRAINING, "3600"],
    ["?refresh=0;url=http://elsewhere", Phase.TRAINING, "10"],
    ["?refresh=3", Phase.SUCCEEDED, null],
    ["", Phase.FAILED_RUN, null],
  ];
  for (const [query, phase, header] of REFRESHES)
    test(`has the refresh '${header}' for '${query}' in phase ${Phase[phase]}`, async () => {
      status = { ...TRAINING, phase };
      assert.equal((await get(`/report${query}`)).headers.get("refresh"), header);
    });

  test("refuses other methods than GET and HEAD, and other paths", async () => {
    assert.equal((await get("/report", "POST")).status, 405);
    assert.equal(await (await get("/report", "HEAD")).text(), "");
    const other = await get("/report/../store.sqlite");
    assert.deepEqual([other.status, await other.text()], [404, "try /metrics, /healthz, /readyz, /report\n"]);
    assert.equal((await get("/constructor")).status, 404);
  });

  const HOSTS: [host: string, status: number][] = [
    ["localhost", 200],
    ["127.0.0.1:9400", 200],
    ["[::1]:9400", 200],
    ["192.0.2.7:8080", 200], // a port-forward that listens there
    ["rebound.example:9400", 403],
    ["localhost.rebound.example", 403],
  ];
  for (const [host, status] of HOSTS)
    test(`answers ${status} to the host '${host}'`, async () => {
      const asked = request({ port: server.port, host: "127.0.0.1", path: "/report", headers: { host } }).end();
      const [response] = (await once(asked, "response")) as [IncomingMessage];
      response.resume();
      assert.equal(response.statusCode, status);
    });

  const [outside] = Object.values(networkInterfaces())
    .flat()
    .filter((it) => it && it.family === "IPv4" && !it.internal);
  test("serves metrics to every machine and the report to this machine", {
    skip: !outside && "no network",
  }, async (t) => {
    const fine = () => ({ ok: true, message: "" });
    const open = await serveMetrics(
      "0.0.0.0:0",
      new Registry(),
      { live: fine, ready: fine },
      {
        "/report": async () => ({ headers: {}, body: "the report" }),
      },
    );
    t.after(() => open.close());
    const statuses = ["/metrics", "/report"].map(async (path) => {
      return (await fetch(`http://${outside!.address}:${open.port}${path}`)).status;
    });
    assert.deepEqual(await Promise.all(statuses), [200, 403]);
  });

  test("says that a folder cannot be read", async () => {
    await rm(join(directory, "report.html"));
    await mkdir(join(directory, "report.html"));
    const response = await get();
    assert.deepEqual([response.status, /EISDIR/.test(await response.text())], [500, true]);
  });
});
