/**
 * `npm run test:browser`: the report in a real browser, with programs that attack whoever reads it. A server counts what
 * any of them gets done: a control page, without any protection, shows that the attacks are such.
 */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { serveMetrics } from "../../learner/metrics/http.ts";
import { LearnerMetrics } from "../../learner/metrics/prometheus.ts";
import { writeMadeUpRun } from "../../learner/report/made-up-run.fixture.ts";
import { reportPage } from "../../learner/report/serve.ts";
import { writeReport } from "../../learner/report/write.ts";
import { Phase } from "../../learner/server/status.ts";
import { dumpDom, findChromium, screenshot, withWindow } from "./chromium.ts";

const chromium = findChromium();
const skip = chromium ? false : "no browser: apt-get install chromium, or name one in CHROMIUM";

/** How a text that got into the page as HTML would reach out, each by its own name. */
const attacks = (to: string): string => `</pre></td></table>
<script>fetch("${to}/script", { mode: "no-cors" })</script>
<img src="${to}/image">
<img src="data:," onerror="fetch('${to}/onerror', { mode: 'no-cors' })">
<svg onload="fetch('${to}/onload', { mode: 'no-cors' })"></svg>
<style>@import url("${to}/import"); body { background: url("${to}/background") }</style>
<link rel="stylesheet" href="${to}/stylesheet">
<iframe srcdoc="<script>fetch('${to}/srcdoc', { mode: 'no-cors' })</script>"></iframe>
<iframe src="${to}/frame"></iframe>
<object data="${to}/object"></object>
<input autofocus onfocus="fetch('${to}/onfocus', { mode: 'no-cors' })">
<meta http-equiv="refresh" content="2;url=${to}/redirect">
`;
const WORKING = [
  ...[
    "background",
    "frame",
    "image",
    "import",
    "object",
    "onerror",
    "onfocus",
    "onload",
    "redirect",
    "script",
    "srcdoc",
  ],
  "stylesheet",
];

describe("the report in a browser", { skip }, () => {
  let directory: string;
  let listener: Server;
  let reached: Set<string>;
  let attacker: string;
  let learner: Awaited<ReturnType<typeof serveMetrics>>;
  let loads = 0;
  let running = true;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), "longrun-browser-"));
    listener = createServer((request, response) => {
      if (request.url === "/unprotected") {
        response.setHeader("content-type", "text/html");
        return response.end(`<!doctype html><body>${attacks(attacker)}`);
      }
      reached.add(request.url!.slice(1));
      response.end();
    });
    await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
    attacker = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
    await writeMadeUpRun(directory, { iterations: 3, finished: 2, state: "running" });
    const text = attacks(attacker);
    await writeFile(join(directory, "best", "program.py"), `${text}\nx = """${text}"""  # ${text}`);
    await writeFile(join(directory, "best", "output.txt"), text);
    const facts = { score: 1, metric: text, iteration: 2, family: text, guards: [text], plan: text };
    await writeFile(join(directory, "best", "score.json"), JSON.stringify(facts));
    const manifest = join(directory, "trainingrun.yaml");
    await writeFile(manifest, `${await readFile(manifest, "utf8")}\n  description: ${JSON.stringify(text)}\n`);
    await writeReport(directory);

    const fine = () => ({ ok: true, message: "" });
    const phase = () => (running ? Phase.EXECUTING : Phase.SUCCEEDED);
    learner = await serveMetrics(
      "127.0.0.1:0",
      new LearnerMetrics().registry,
      { live: fine, ready: fine },
      {
        "/report": (query) => {
          loads++;
          return reportPage(directory, { phase: phase(), iteration: 3, iterations: 3, message: text }, query);
        },
      },
    );
  });
  after(async () => {
    await learner?.close();
    listener?.closeAllConnections();
    listener?.close();
    await rm(directory, { recursive: true });
  });
  const report = (query = "?refresh=0") => `http://127.0.0.1:${learner.port}/report${query}`;
  const reachedBy = async (url: string) => {
    reached = new Set();
    await withWindow(chromium!, url, () => sleep(6000));
    return [...reached].filter((path) => path !== "favicon.ico").sort();
  };

  test("control: without protection each attack gets through", async () => {
    assert.deepEqual(await reachedBy(`${attacker}/unprotected`), WORKING);
  });

  test("served: none does, and what they are is there to read", async () => {
    assert.deepEqual(await reachedBy(report()), []);
    const dom = await dumpDom(chromium!, report());
    assert.ok(dom.includes("&lt;script&gt;fetch("), "the program's text is there");
    assert.deepEqual(dom.match(/<(script|img|iframe|object|link|input|svg[^>]*\sonload)\b/g), null);
  });

  test("served, with the attacks as HTML in it: none gets through", async () => {
    const path = join(directory, "report.html");
    const escaped = await readFile(path, "utf8");
    await writeFile(
      path,
      escaped.replace("<main>", () => `<main>${attacks(attacker)}`),
    );
    assert.deepEqual(await reachedBy(report()), []);
    // Opened as a file no header forbids it to go elsewhere; nothing else gets through.
    assert.deepEqual(await reachedBy(pathToFileURL(path).href), ["redirect"]);
    await writeFile(path, escaped);
  });

  test("it is loaded again while the run goes on, and not after it", async () => {
    const loadsWithin = async (seconds: number) => {
      loads = 0;
      await withWindow(chromium!, report("?refresh=1"), () => sleep(seconds * 1000));
      return loads;
    };
    assert.ok((await loadsWithin(8)) >= 3);
    running = false;
    assert.equal(await loadsWithin(6), 1);
    running = true;
  });

  const { SCREENSHOT } = process.env;
  test("a picture of it, to look at", { skip: SCREENSHOT ? false : "SCREENSHOT=FILE.png takes one" }, async () => {
    await screenshot(chromium!, report(), SCREENSHOT!, "1280,3000");
  });
});
