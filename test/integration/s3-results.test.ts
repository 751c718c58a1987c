/** `longrun results` with a real server of S3, with cut connections and denied rights. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import fs from "node:fs";
import { createServer as createHttpServer, type IncomingMessage, request as requestHttp } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { describe, test } from "node:test";
import { TRANSFER_LIMITS, type TransferLimits } from "../../learner/hub/limits.ts";
import { S3Bucket } from "../../learner/hub/s3.ts";
import { pullResults } from "../../learner/results/pull.ts";
import { pushResults } from "../../learner/results/push.ts";
import { uploadFile } from "../../learner/results/upload.ts";
import {
  command,
  cutting,
  FAST,
  fresh,
  keys,
  MiB,
  put,
  RESULTS_COMMAND,
  root,
  server,
  skip,
  useServer,
} from "./s3.fixture.ts";

describe("Results in S3", { skip }, () => {
  useServer();

  function makeRun(name = "run"): string {
    const folder = fresh();
    fs.mkdirSync(path.join(folder, "best"), { recursive: true });
    fs.writeFileSync(path.join(folder, "trainingrun.yaml"), `metadata: {name: ${name}}\n`);
    fs.writeFileSync(path.join(folder, "store.sqlite"), "not pushed");
    fs.writeFileSync(path.join(folder, "best/program.py"), "print(1)\n");
    addCheckpoint(folder, 1);
    return folder;
  }

  function addCheckpoint(folder: string, iteration: number): void {
    const checkpoint = path.join(folder, "checkpoints", `1-${String(iteration).padStart(6, "0")}`);
    fs.mkdirSync(path.join(checkpoint, "policy"), { recursive: true });
    fs.writeFileSync(path.join(checkpoint, "state.json"), JSON.stringify({ iteration }));
    fs.writeFileSync(path.join(checkpoint, "policy/model.safetensors"), randomBytes(12 * MiB));
    fs.appendFileSync(path.join(folder, "metrics.jsonl"), `{"iteration":${iteration}}\n`);
  }

  const LIMITS = { ...FAST, partBytes: 5 * MiB, filesAtOnce: 2 };
  const output = { write: () => {} };
  const push = (
    directory: string,
    url: string,
    env: NodeJS.ProcessEnv = {},
    keepLast = 3,
    limits: Partial<TransferLimits> = {},
    said: { write(text: string): unknown } = output,
  ) =>
    pushResults({
      ...{ url, directory, keepLast, env: { ...server.env, ...env }, output: said },
      limits: { ...LIMITS, tries: 1, ...limits },
    });
  const pull = (url: string, directory: string, env: NodeJS.ProcessEnv = {}) =>
    pullResults({ url, directory, env: { ...server.env, ...env }, output, limits: { ...LIMITS, tries: 1 } });

  /** Files that are not pushed, or that a pull writes. */
  const NOT_BOTH = ["store.sqlite", "results.json"];

  function sameTree(a: string, b: string, except: string[] = []): void {
    const files = (folder: string) =>
      (fs.readdirSync(folder, { recursive: true }) as string[])
        .filter((name) => fs.statSync(path.join(folder, name)).isFile() && !except.includes(name))
        .sort();
    assert.deepEqual(files(a), files(b));
    for (const name of files(a))
      assert.ok(fs.readFileSync(path.join(a, name)).equals(fs.readFileSync(path.join(b, name))), `${name} differs`);
  }

  test("A pull restores the pushed run folder; no file is sent or fetched twice", async () => {
    const run = makeRun();
    const url = "s3://results/team/run";
    const first = await push(run, url);
    assert.deepEqual([first.iteration, first.checkpoint], [1, "checkpoints/1-000001"]);
    assert.ok(first.sentBytes > 12 * MiB);
    assert.equal((await push(run, url)).sentBytes, 0);
    const back = fresh();
    const pulled = await pull(url, back);
    assert.equal(pulled.checkpoint, path.join(back, "checkpoints/1-000001"));
    sameTree(run, back, NOT_BOTH);
    assert.equal((await pull(url, back)).fetchedBytes, 0);
    await assert.rejects(pull(url, run), {
      message: /has store\.sqlite, which is not of these results; give a new or/,
    });
  });

  test("a pull into the folder of an earlier pull fetches changed files, also a file of the same length", async () => {
    const run = makeRun();
    const url = "s3://results/again";
    await push(run, url);
    const back = fresh();
    await pull(url, back);
    addCheckpoint(run, 2);
    fs.writeFileSync(path.join(run, "best/program.py"), "print(2)\n");
    await push(run, url);
    {
      using proxy = await cutting("down", 8 * MiB);
      await assert.rejects(pull(url, back, proxy.env), { code: "network" });
    }
    addCheckpoint(run, 3);
    await push(run, url);
    assert.equal((await pull(url, back)).iteration, 3);
    for (const old of [1, 2]) fs.rmSync(path.join(run, `checkpoints/1-00000${old}`), { recursive: true });
    sameTree(run, back, NOT_BOTH);
    await push(makeRun("other"), "s3://results/again-other");
    await assert.rejects(pull("s3://results/again-other", back), {
      message: `${back} has results of run run; give a new or empty folder`,
    });
  });

  test("An interrupted push leaves the earlier checkpoint whole; the next push sends only the missing parts", async () => {
    const run = makeRun();
    const url = "s3://results/cut";
    await push(run, url);
    const before = fresh();
    fs.cpSync(run, before, { recursive: true });
    addCheckpoint(run, 2);
    {
      using proxy = await cutting("up", 8 * MiB);
      // One part after the other: with two at once, both may be incomplete when the connection breaks.
      await assert.rejects(push(run, url, proxy.env, 3, { filesAtOnce: 1 }), { code: "network" });
    }
    const between = fresh();
    assert.equal((await pull(url, between)).iteration, 1);
    sameTree(before, between, NOT_BOTH);
    const { iteration, sentBytes } = await push(run, url);
    assert.equal(iteration, 2);
    assert.ok(sentBytes < 8 * MiB, `${sentBytes} bytes: the part that had come is not sent again`);
    const last = fresh();
    await pull(url, last);
    sameTree(run, last, [
      ...NOT_BOTH,
      ...["state.json", "policy/model.safetensors"].map((it) => `checkpoints/1-000001/${it}`),
    ]);
  });

  test("A push refuses a file of several parts that changes meanwhile, and makes no object", async () => {
    const file = path.join(root, "report.html");
    const hashed = randomBytes(11 * MiB);
    const { length: bytes } = hashed;
    const sha256 = createHash("sha256").update(hashed).digest("hex");
    const transfer = { limits: { ...TRANSFER_LIMITS, ...LIMITS }, signal: new AbortController().signal, say() {} };
    using bucket = await S3Bucket.open({ bucket: "results", prefix: "" }, server.env, transfer);
    for (const now of [randomBytes(bytes), hashed.subarray(0, 10 * MiB)]) {
      fs.writeFileSync(file, now);
      const pushing = uploadFile(bucket, "changed/report.html", file, { name: "report.html", bytes, sha256 }, () => {});
      await assert.rejects(pushing, {
        code: "hash",
        message: "report.html has changed while it was pushed; push again",
      });
      assert.deepEqual(await keys("results", "changed/"), []);
    }
  });

  /**
   * Passes requests on to the server after `between`. If that returns a status and code, they are the answer; if it returns "lost", the
   * server's answer is not passed on.
   */
  async function fronting(
    between: (request: IncomingMessage, url: URL) => Promise<[status: number, code: string] | "lost" | undefined>,
  ) {
    const front = createHttpServer(async (request, response) => {
      const { method = "", headers } = request;
      const url = new URL(request.url!, server.endpoint);
      const instead = await between(request, url);
      if (Array.isArray(instead)) {
        request.resume();
        const why = `<Error><Code>${instead[1]}</Code><Message>as the test wants</Message></Error>`;
        response.writeHead(instead[0], { "content-type": "application/xml" }).end(method === "HEAD" ? "" : why);
        return;
      }
      const onward = requestHttp(url, { method, headers }, (answer) => {
        if (instead === "lost") return void answer.resume().once("end", () => response.destroy());
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      });
      request.pipe(onward.on("error", () => response.destroy()));
    });
    await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
    const env = { AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${(front.address() as AddressInfo).port}` };
    return { env, [Symbol.dispose]: () => void front.close().closeAllConnections() };
  }

  /** Answers requests of `denied` as S3 does where a policy denies them. */
  const denying = (denied: (method: string, url: URL) => boolean) =>
    fronting(async ({ method = "" }, url) => (denied(method, url) ? [403, "AccessDenied"] : undefined));

  const isList = (method: string, url: URL) => method === "GET" && url.searchParams.has("list-type");
  const isManifest = ({ method }: IncomingMessage, url: URL) => method === "PUT" && /results\.json$/.test(url.pathname);

  /** Pulls, and compares the pulled files with the newest checkpoint of a run folder. */
  async function pullsNewest(run: string, url: string, iteration: number): Promise<void> {
    const back = fresh();
    assert.equal((await pull(url, back)).iteration, iteration);
    sameTree(path.join(run, `checkpoints/1-00000${iteration}`), path.join(back, `checkpoints/1-00000${iteration}`));
  }

  test("Two pushes at once leave results.json and all its files, of the push that ended last", async () => {
    const url = "s3://results/both";
    const [first, last] = [makeRun(), makeRun()];
    await push(first, url);
    addCheckpoint(first, 2);
    for (const iteration of [2, 3]) addCheckpoint(last, iteration);
    let others = 0;
    using front = await fronting(async (request, at) => {
      if (isManifest(request, at) && others++ === 0) await push(first, url, {}, 1);
      return undefined;
    });
    await push(last, url, front.env, 1);
    assert.equal(others, 2, "the first try was refused");
    await pullsNewest(last, url, 3);
  });

  test("A push into a prefix that another push begins at this moment joins it", async () => {
    const url = "s3://results/begun";
    const [first, last] = [makeRun(), makeRun()];
    addCheckpoint(last, 2);
    let lists = 0;
    using front = await fronting(async (request, at) => {
      if (isList(request.method!, at) && lists++ === 0) await push(first, url);
      return undefined;
    });
    await push(last, url, front.env);
    await pullsNewest(last, url, 2);
  });

  test("A push leaves the new files of a push under way", async () => {
    const url = "s3://results/under-way";
    const run = makeRun();
    await push(run, url);
    using front = await fronting(async (request, at) => {
      if (!isManifest(request, at)) return undefined;
      await push(run, url, {}, 1);
      return [403, "AccessDenied"];
    });
    const other = makeRun();
    addCheckpoint(other, 2);
    await assert.rejects(push(other, url, front.env), { code: "access" });
    const there = await keys("results", "under-way/checkpoints/1-000002");
    assert.equal(there.length, 2, there.join(" "));
  });

  test("A push ends well if the answer about results.json is lost, and on a server without conditional writes", async () => {
    let lost = 0;
    using losing = await fronting(async (request, at) =>
      isManifest(request, at) && lost++ % 2 === 0 ? "lost" : undefined,
    );
    const run = makeRun();
    await push(run, "s3://results/lost", losing.env, 3, { tries: 2 });
    assert.equal(lost, 4);
    await pullsNewest(run, "s3://results/lost", 1);
    using plain = await fronting(async ({ headers }) =>
      headers["if-match"] || headers["if-none-match"] ? [501, "NotImplemented"] : undefined,
    );
    await push(run, "s3://results/plain", plain.env);
    await pullsNewest(run, "s3://results/plain", 1);
  });

  test("A push says that it takes over the results of another run of its name", async () => {
    const url = "s3://results/created-again";
    const old = makeRun();
    addCheckpoint(old, 2);
    const said: string[] = [];
    for (const run of [old, old, makeRun()]) await push(run, url, {}, 3, {}, { write: (line) => said.push(line) });
    const told = said.filter((line) => line.includes("takes the prefix over"));
    assert.equal(told.length, 1, told.join(""));
    assert.match(told[0]!, /checkpoint of iteration 2 that this folder's run did not write/);
  });

  const rights: [right: string, denied: (method: string, url: URL) => boolean][] = [
    ["s3:ListBucket", isList],
    // Without s3:ListBucket S3 does not report that an object is missing.
    ["s3:GetObject and s3:ListBucket", (method, url) => isList(method, url) || /results\.json$/.test(url.pathname)],
    ["s3:GetObject and s3:ListBucket", (method) => method === "HEAD"],
    ["s3:PutObject", (method, url) => method === "PUT" && /\/best\//.test(url.pathname)],
    ["s3:PutObject", (method, url) => method === "PUT" && url.searchParams.has("partNumber")],
    ["s3:ListBucketMultipartUploads", (_, url) => url.searchParams.has("uploads") && url.searchParams.has("prefix")],
    ["s3:ListMultipartUploadParts", (method, url) => method === "GET" && url.searchParams.has("uploadId")],
    ["s3:DeleteObject", (method) => method === "DELETE"],
  ];
  for (const [index, [right, denied]] of rights.entries())
    test(`The message names the right if a bucket denies ${right} (case ${index})`, async () => {
      using front = await denying(denied);
      const url = `s3://results/rights-${index}`;
      const run = makeRun();
      if (right === "s3:DeleteObject") {
        await push(run, url);
        addCheckpoint(run, 2);
      }
      await assert.rejects(push(run, url, front.env, 1), (error: Error & { code: string }) => {
        assert.equal(error.code, "access", error.message);
        assert.ok(error.message.endsWith(`; give the credentials the right ${right}`), error.message);
        return true;
      });
    });

  test("A push removes older checkpoints and unnamed files, and refuses a prefix that others use", async () => {
    const run = makeRun();
    const url = "s3://results/kept";
    await push(run, url);
    addCheckpoint(run, 2);
    await put("results", "kept/checkpoints/1-000002-left/over", "x");
    await push(run, url, {}, 1, { leftoverSeconds: 0 });
    const there = await keys("results", "kept/");
    assert.ok(
      there.every((key) => !/1-000001|left/.test(key)),
      there.join(" "),
    );
    assert.equal(there.length, 6, there.join(" "));
    await assert.rejects(push(makeRun("other"), url), {
      message: "s3://results/kept has the results of run run; give another prefix",
    });
    await put("results", "mine/notes.txt", "x");
    await assert.rejects(push(run, "s3://results/mine"), {
      code: "input",
      message: /has objects \(mine\/notes\.txt\) and no/,
    });
    assert.deepEqual(await keys("results", "mine/"), ["mine/notes.txt"]);
  });

  test("A pull refuses a manifest whose paths leave the folder", async () => {
    const files = [{ name: "../../escaped", bytes: 1, sha256: "0".repeat(64) }];
    const manifest = {
      format: 1,
      run: "run",
      pushedAt: "",
      checkpoints: [],
      folders: [{ at: "run/a", path: ".", files }],
    };
    await put("results", "evil/results.json", JSON.stringify(manifest));
    await assert.rejects(pull("s3://results/evil", fresh()), {
      code: "input",
      message: /is no manifest that this version/,
    });
  });

  test("The command pushes and pulls, and ends with status 2 where the user must act", async () => {
    const run = makeRun();
    const pushed = await command(RESULTS_COMMAND, ["push", run, "s3://results/command"]);
    assert.deepEqual(
      [pushed.status, pushed.stdout],
      [0, "s3://results/command: checkpoint of iteration 1\n"],
      pushed.stderr,
    );
    const out = fresh();
    const pulled = await command(RESULTS_COMMAND, ["pull", "s3://results/command", "--out", out]);
    assert.deepEqual([pulled.status, pulled.stdout], [0, `${out}/checkpoints/1-000001\n`], pulled.stderr);
    const nowhere = await command(RESULTS_COMMAND, ["pull", "s3://results/command", "--out", "/proc/longrun/back"]);
    assert.deepEqual(
      [nowhere.status, nowhere.stderr],
      [2, "--out /proc/longrun/back: no folder can be created there; choose another place\n"],
    );
    const none = await command(RESULTS_COMMAND, ["push", root, "s3://results/command"]);
    assert.deepEqual(
      [none.status, none.stderr],
      [2, `${root} is no folder of a run (it has no trainingrun.yaml); give one\n`],
    );
  });
});
