/**
 * `npm run test:browser`: the report in a real browser, with programs that attack the reader. A server counts the attacks that succeed; on
 * a control page without protection all succeed. Then the report's layout at three widths, light and dark, for runs of different kinds:
 * nothing is cut without a hint, and every text can be read.
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
import { type MadeUpRun, writeMadeUpRun } from "../../learner/report/made-up-run.fixture.ts";
import { reportPage } from "../../learner/report/serve.ts";
import { writeReport } from "../../learner/report/write.ts";
import { Phase } from "../../learner/server/status.ts";
import { LANES } from "../lane-tools.ts";
import { dumpDom, findChromium, screenshot, withPage, withWindow } from "./chromium.ts";

const chromium = findChromium();
const skip = LANES["test:browser"].unavailable() ?? false;

/** Attacks of a text that got into the page as HTML. Each sends a request with its own name. */
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

  test("Without protection, each attack reaches the attacker (the control of this test)", async () => {
    assert.deepEqual(await reachedBy(`${attacker}/unprotected`), WORKING);
  });

  test("The served report blocks each attack, and shows its text", async () => {
    assert.deepEqual(await reachedBy(report()), []);
    const dom = await dumpDom(chromium!, report());
    assert.ok(dom.includes("&lt;script&gt;fetch("), "the program's text is there");
    assert.deepEqual(dom.match(/<(script|img|iframe|object|link|input|svg[^>]*\sonload)\b/g), null);
  });

  test("The served report blocks attacks that somebody has inserted into it as HTML", async () => {
    const path = join(directory, "report.html");
    const escaped = await readFile(path, "utf8");
    await writeFile(
      path,
      escaped.replace("<main>", () => `<main>${attacks(attacker)}`),
    );
    assert.deepEqual(await reachedBy(report()), []);
    // For a file no header forbids a redirect; no other attack succeeds.
    assert.deepEqual(await reachedBy(pathToFileURL(path).href), ["redirect"]);
    await writeFile(path, escaped);
  });

  test("The page reloads while the run goes on, and stops reloading when the run has ended", async () => {
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
  test("SCREENSHOT writes a picture of the report", {
    skip: SCREENSHOT ? false : "SCREENSHOT=FILE.png takes one",
  }, async () => {
    await screenshot(chromium!, report(), SCREENSHOT!, "1280,3000");
  });
});

/** Result of `layout.js`. */
interface Look {
  /** Elements that reach beyond the page. */
  cut: string[];
  pageScrolls: boolean;
  /** Boxes that scroll; boxes whose hint about scrolling is missing or wrong. */
  wide: number;
  unhinted: string[];
  /** CSS pixels of the smallest text in a plot, and in the heatmap. */
  smallest: number;
  heat: number;
  squares: number;
  /** Contrast of each number in the heatmap with its square. */
  contrasts: number[];
  /** Frames without a plot. */
  empty: number;
  text: string;
}

const WIDTHS = [400, 800, 1400];

const RUNS: Record<string, MadeUpRun> = {
  "twelve iterations, evaluated in the middle": { iterations: 12, finished: 12, state: "succeeded", evaluatedEvery: 4 },
  "no valid program": { iterations: 5, finished: 5, state: "succeeded", validAtStart: 0 },
  "one iteration": { iterations: 12, finished: 1, state: "running" },
  "300 iterations": { iterations: 300, finished: 300, state: "succeeded" },
  "three tasks": { iterations: 6, finished: 6, state: "succeeded", tasks: ["diamonds", "movie", "wage"] },
};

describe("the report's layout in a browser", { skip }, () => {
  let directory: string;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), "longrun-layout-"));
  });
  after(() => rm(directory, { recursive: true }));

  for (const [name, run] of Object.entries(RUNS))
    test(`The layout fits three widths, light and dark: ${name}`, async () => {
      const look = await readFile(new URL("layout.js", import.meta.url), "utf8");
      const folder = join(directory, name);
      await writeMadeUpRun(folder, run);
      await writeReport(folder);
      const url = pathToFileURL(join(folder, "report.html")).href;
      await withPage(chromium!, async (page) => {
        for (const width of WIDTHS)
          for (const scheme of ["light", "dark"] as const) {
            await page.open(url, width, scheme);
            const seen = (await page.evaluate(look)) as Look;
            const at = `${width} px, ${scheme}`;
            assert.deepEqual(seen.cut, [], at);
            assert.equal(seen.pageScrolls, false, at);
            assert.deepEqual(seen.unhinted, [], `${at}: a hint stands where a box scrolls, and nowhere else`);
            if (width === 400) assert.ok(seen.wide > 0, "a table scrolls at 400 px");
            assert.ok(seen.smallest >= 8, `${at}: text of ${seen.smallest} px in a plot`);
            assert.ok(seen.heat! >= 9.5, `${at}: text of ${seen.heat} px in the heatmap`);
            if (run.finished <= 12) assert.ok(seen.contrasts.length > 0 && seen.contrasts.length === seen.squares, at);
            for (const contrast of seen.contrasts)
              assert.ok(contrast >= 3.5, `${at}: a number's contrast is ${contrast}`);
            assert.equal(seen.empty, 0, "no frame without a plot");
            assert.match(seen.text, /the stronger the colour, the more/);
            if (run.validAtStart === 0)
              assert.equal(seen.text.match(/No valid program yet, so there is no score/g)?.length, 1);
          }
      });
    });
});
