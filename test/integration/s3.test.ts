/** `longrun model fetch s3://…` and `longrun results` with a real server of S3, with cut connections and kills. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import fs from "node:fs";
import { createServer as createHttpServer, request as requestHttp } from "node:http";
import { type AddressInfo, connect, createServer } from "node:net";
import os from "node:os";
import path from "node:path";
import type { Duplex } from "node:stream";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { fetchModel } from "../../learner/hub/fetch-model.ts";
import { TRANSFER_LIMITS, type TransferLimits } from "../../learner/hub/limits.ts";
import { S3Bucket } from "../../learner/hub/s3.ts";
import { pullResults } from "../../learner/results/pull.ts";
import { pushResults } from "../../learner/results/push.ts";
import { uploadFile } from "../../learner/results/upload.ts";
import { missingS3, S3_KEYS, S3Server } from "../cluster/s3-server.ts";

const POLICY = fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url));
const MODEL_COMMAND = fileURLToPath(new URL("../../learner/commands/model-command.ts", import.meta.url));
const RESULTS_COMMAND = fileURLToPath(new URL("../../learner/commands/results-command.ts", import.meta.url));
const FAST = { firstWaitSeconds: 0.01, longestWaitSeconds: 0.02 };
const MiB = 2 ** 20;
const skip = missingS3();
const root = fs.mkdtempSync(path.join(os.tmpdir(), "s3-test-"));
after(() => fs.rmSync(root, { recursive: true }));

let server: S3Server;
let count = 0;
const fresh = () => path.join(root, `folder ${count++}`);

async function put(bucket: string, key: string, body: Buffer | string): Promise<void> {
  await server.client.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body }));
}

async function putParts(bucket: string, key: string, body: Buffer, partBytes: number): Promise<void> {
  const place = { Bucket: bucket, Key: key };
  const { UploadId } = await server.client.send(new CreateMultipartUploadCommand(place));
  const Parts: { PartNumber: number; ETag: string }[] = [];
  for (let at = 0; at < body.length; at += partBytes) {
    const PartNumber = Parts.length + 1;
    const part = { ...place, UploadId, PartNumber, Body: body.subarray(at, at + partBytes) };
    Parts.push({ PartNumber, ETag: (await server.client.send(new UploadPartCommand(part))).ETag! });
  }
  await server.client.send(new CompleteMultipartUploadCommand({ ...place, UploadId, MultipartUpload: { Parts } }));
}

async function keys(bucket: string, prefix: string): Promise<string[]> {
  const { Contents = [] } = await server.client.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix }));
  return Contents.map(({ Key }) => Key!);
}

async function putPolicy(prefix: string, files: Record<string, Buffer | string> = {}): Promise<void> {
  for (const name of fs.readdirSync(POLICY))
    await put("models", `${prefix}/${name}`, fs.readFileSync(path.join(POLICY, name)));
  for (const [name, body] of Object.entries(files)) await put("models", `${prefix}/${name}`, body);
}

async function fetchFrom(url: string, out: string, env: NodeJS.ProcessEnv = {}, limits: Partial<TransferLimits> = {}) {
  const lines: string[] = [];
  const output = { write: (text: string) => lines.push(text.trimEnd()) };
  const around = { LONGRUN_CACHE: root, ...server.env, ...env };
  return { ...(await fetchModel({ repo: url, out, env: around, output, limits: { ...FAST, ...limits } })), lines };
}

/** Passes bytes on to the server, and breaks off after `bytes` that it was sent, or that it sends, in all. */
async function cutting(direction: "up" | "down", bytes: number) {
  const { hostname, port } = new URL(server.endpoint);
  let left = bytes;
  let passed = 0;
  const proxy = createServer((client) => {
    const onward = connect(Number(port), hostname);
    const end = () => {
      for (const socket of [client, onward]) socket.destroy();
    };
    for (const socket of [client, onward]) socket.on("error", end).on("close", end);
    const [counted, plain] = direction === "up" ? [client, onward] : [onward, client];
    plain.pipe(counted);
    counted.on("data", (chunk: Buffer) => {
      passed += chunk.length;
      left -= chunk.length;
      if (left < 0) return end();
      if (!plain.write(chunk)) {
        counted.pause();
        plain.once("drain", () => counted.resume());
      }
    });
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port: own } = proxy.address() as { port: number };
  return {
    env: { AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${own}` },
    passed: () => passed,
    [Symbol.dispose]: () => void proxy.close(),
  };
}

function command(program: string, args: string[], env: NodeJS.ProcessEnv = {}) {
  const { AWS_PROFILE: _, ...rest } = process.env;
  return new Promise<{ status: number; stdout: string; stderr: string }>((resolve) =>
    execFile(
      process.execPath,
      [program, ...args],
      { env: { ...rest, ...server.env, ...env } },
      (error, stdout, stderr) => resolve({ status: error ? Number(error.code) : 0, stdout, stderr }),
    ),
  );
}

describe("S3", { skip }, () => {
  before(async () => {
    // The library must find no credentials by itself.
    process.env.AWS_EC2_METADATA_DISABLED = "true";
    for (const name of ["CONFIG_FILE", "SHARED_CREDENTIALS_FILE"]) process.env[`AWS_${name}`] = path.join(root, "none");
    server = await S3Server.start("models", "results");
  });
  after(async () => server[Symbol.asyncDispose]());

  test("A fetch brings what training needs, verified by the hashes of parts too; a second fetch needs no network", async () => {
    const readme = randomBytes(11 * MiB + 7);
    await putPolicy("team/policy", { "pytorch_model.bin": "x", "original/model.safetensors": "x" });
    await putParts("models", "team/policy/README.md", readme, 5 * MiB);
    const out = fresh();
    const { folder, commit, bytes, fetchedBytes } = await fetchFrom("s3://models/team/policy", out);
    assert.equal(folder, out);
    assert.equal(fetchedBytes, bytes);
    assert.ok(fs.readFileSync(path.join(out, "README.md")).equals(readme));
    for (const name of ["model.safetensors", "config.json", "tokenizer.json"])
      assert.ok(fs.readFileSync(path.join(out, name)).equals(fs.readFileSync(path.join(POLICY, name))), name);
    assert.ok(!fs.existsSync(path.join(out, "pytorch_model.bin")) && !fs.existsSync(path.join(out, "original")));
    const record = JSON.parse(fs.readFileSync(path.join(out, "fetched.json"), "utf8"));
    assert.deepEqual([record.repo, record.commit, record.complete], ["s3://models/team/policy", commit, true]);
    const of = (name: string) => record.files.find((file: { name: string }) => file.name === name);
    assert.equal(of("README.md").algorithm, "md5-parts");
    assert.match(of("README.md").hash, /-3$/);
    assert.equal(of("config.json").algorithm, "md5");
    const again = await fetchFrom("s3://models/team/policy", out, { AWS_ENDPOINT_URL_S3: "http://127.0.0.1:1" });
    assert.equal(again.fetchedBytes, 0);
  });

  test("A fetch over a connection that breaks again and again keeps each byte once", async () => {
    await putPolicy("cut");
    const out = fresh();
    {
      using proxy = await cutting("down", 2_000_000);
      await assert.rejects(fetchFrom("s3://models/cut", out, proxy.env, { tries: 2 }), { code: "network" });
    }
    const part = fs.readdirSync(out).find((name) => /^model\.safetensors\.[0-9a-f]{12}\.part$/.test(name))!;
    const { size } = fs.statSync(path.join(out, part));
    assert.ok(size > 0 && size < 2_000_000, `${size}`);
    const { fetchedBytes } = await fetchFrom("s3://models/cut", out);
    const weights = fs.statSync(path.join(POLICY, "model.safetensors")).size;
    assert.ok(fetchedBytes <= weights + 100_000 - size, `${fetchedBytes} of ${weights}, ${size} were there`);
    const fetched = fs.readFileSync(path.join(out, "model.safetensors"));
    assert.ok(fetched.equals(fs.readFileSync(path.join(POLICY, "model.safetensors"))));
  });

  test("The fetch records hashes that equal SHA256SUMS, and refuses a wrong one", async () => {
    const sums = (name: string, content = fs.readFileSync(path.join(POLICY, name))) =>
      `${createHash("sha256").update(content).digest("hex")}  ${name}\n`;
    await putPolicy("sums", { SHA256SUMS: sums("model.safetensors") + sums("config.json") });
    const { folder } = await fetchFrom("s3://models/sums", fresh());
    const { files } = JSON.parse(fs.readFileSync(path.join(folder, "fetched.json"), "utf8"));
    const kinds = Object.fromEntries(
      files.map((file: { name: string; algorithm: string }) => [file.name, file.algorithm]),
    );
    assert.deepEqual([kinds["model.safetensors"], kinds["tokenizer.json"]], ["sha256", "md5"]);
    await put("models", "sums/SHA256SUMS", sums("model.safetensors", Buffer.from("another")));
    await assert.rejects(fetchFrom("s3://models/sums", fresh()), {
      code: "hash",
      message: /model\.safetensors .* another hash/,
    });
  });

  test("A model that was replaced during its fetch is fetched anew", async () => {
    await putPolicy("replaced");
    const out = fresh();
    {
      using proxy = await cutting("down", 2_000_000);
      await assert.rejects(fetchFrom("s3://models/replaced", out, proxy.env, { tries: 1 }));
    }
    await put("models", "replaced/README.md", "another");
    const { lines } = await fetchFrom("s3://models/replaced", out);
    assert.equal(fs.readFileSync(path.join(out, "README.md"), "utf8"), "another");
    assert.match(lines.join("\n"), /s3:\/\/models\/replaced is another one than .* was begun with/);
  });

  const refusals: [what: string, url: string, env: NodeJS.ProcessEnv, code: string, message: RegExp][] = [
    [
      "no such bucket",
      "s3://nothing/here",
      {},
      "input",
      /has no bucket nothing; check the name and AWS_ENDPOINT_URL_S3$/,
    ],
    [
      "nothing there",
      "s3://models/none",
      {},
      "input",
      /^there is nothing in s3:\/\/models\/none\/; give the folder with/,
    ],
    ["no place", "s3://Models/a/../b", {}, "input", /^s3:\/\/Models\/a\/\.\.\/b is no place in S3; give s3:\/\/BUCKET/],
    [
      "a wrong secret",
      "s3://models/cut",
      { AWS_SECRET_ACCESS_KEY: "x" },
      "access",
      /refuses s3:\/\/models: 403 Sig.*; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN$/,
    ],
    [
      "a session that is over or wrong",
      "s3://models/cut",
      { AWS_SESSION_TOKEN: "x" },
      "access",
      /refuses s3:\/\/models: 400 InvalidToken .*; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN$/,
    ],
    [
      "no credentials",
      "s3://models/cut",
      { AWS_ACCESS_KEY_ID: "", AWS_SECRET_ACCESS_KEY: "" },
      "access",
      /refuses s3:\/\/models: 403 .*; no credentials were found: set AWS_ACCESS_KEY_ID/,
    ],
  ];
  for (const [what, url, env, code, message] of refusals)
    test(`The fetch refuses ${what} in one line, at once`, async () => {
      await assert.rejects(fetchFrom(url, fresh(), env), (error: Error & { code: string }) => {
        assert.equal(error.code, code, error.message);
        assert.match(error.message, message);
        return true;
      });
    });

  test("An error names a proxy that refuses, or a server that is not S3, in one line", async () => {
    const refuse = (_: unknown, socket: Duplex) => socket.on("error", () => {}).end("HTTP/1.1 407 no\r\n\r\n");
    const proxy = createHttpServer((_, response) => void response.writeHead(403).end("no entry")).on("connect", refuse);
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const through = { HTTP_PROXY: address.replace("//", "//me:secret@"), HTTPS_PROXY: address, NO_PROXY: "" };
    const endpoint = (url: string) => ({ AWS_ENDPOINT_URL_S3: url, ...through });
    try {
      await assert.rejects(fetchFrom("s3://models/cut", fresh(), endpoint("https://s3.test")), {
        message: `the proxy ${address} (HTTPS_PROXY) wants a name and password; write it as http://NAME:PASSWORD@HOST:PORT`,
      });
      await assert.rejects(fetchFrom("s3://models/cut", fresh(), endpoint("http://s3.test")), {
        message: `http://s3.test, or the proxy ${address} (HTTP_PROXY) before it, answers 403 and not as S3 does; check both addresses`,
      });
    } finally {
      proxy.close().closeAllConnections();
    }
  });

  describe("a workload identity", () => {
    const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret } = S3_KEYS;
    let denies = false;
    /** Stands for AWS's STS (POST) and for the agent of EKS (GET). */
    const identities = createHttpServer((request, response) => {
      const refused = `<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not authorized</Message></Error></ErrorResponse>`;
      const keys = `<AccessKeyId>${id}</AccessKeyId><SecretAccessKey>${secret}</SecretAccessKey><SessionToken></SessionToken>`;
      const given = `<Credentials>${keys}<Expiration>2040-01-01T00:00:00Z</Expiration></Credentials>`;
      const result = `<AssumeRoleWithWebIdentityResult>${given}</AssumeRoleWithWebIdentityResult>`;
      const xml = `<AssumeRoleWithWebIdentityResponse>${result}</AssumeRoleWithWebIdentityResponse>`;
      const json = { AccessKeyId: id, SecretAccessKey: secret, Token: "", Expiration: "2040-01-01T00:00:00Z" };
      response.writeHead(denies ? 403 : 200);
      if (request.method === "POST") response.end(denies ? refused : xml);
      else response.end(denies ? "{}" : JSON.stringify(json));
    });
    const token = path.join(root, "token");
    const variables = () => {
      const url = `http://127.0.0.1:${(identities.address() as AddressInfo).port}`;
      const role = "arn:aws:iam::1:role/r";
      return {
        sts: { AWS_ROLE_ARN: role, AWS_WEB_IDENTITY_TOKEN_FILE: token, AWS_ENDPOINT_URL_STS: url },
        agent: { AWS_CONTAINER_CREDENTIALS_FULL_URI: url, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: token },
      };
    };
    /** Fetches without keys; the library reads the process' own environment. */
    async function fetchAs(given: NodeJS.ProcessEnv): Promise<string> {
      const none = { AWS_ACCESS_KEY_ID: "", AWS_SECRET_ACCESS_KEY: "" };
      Object.assign(process.env, given);
      try {
        await fetchFrom("s3://models/cut", fresh(), { ...none, ...given }, { tries: 2 });
        return "fetched";
      } catch (error) {
        return `${(error as { code?: string }).code}: ${(error as Error).message}`;
      } finally {
        for (const name of Object.keys(given)) delete process.env[name];
      }
    }
    before(async () => {
      fs.writeFileSync(token, "a token");
      await new Promise<void>((resolve) => identities.listen(0, "127.0.0.1", resolve));
    });
    after(() => identities.close().closeAllConnections());

    test("gives the credentials, by STS and by the agent of a node", async () => {
      const { sts, agent } = variables();
      for (const each of [sts, agent]) assert.equal(await fetchAs(each), "fetched");
    });

    test("that gives none is named with the reason, and nothing is asked without credentials", async () => {
      const { sts, agent } = variables();
      const remedy = "check the role, and that it trusts this service account";
      const named = "the workload identity (AWS_WEB_IDENTITY_TOKEN_FILE";
      denies = true;
      assert.equal(
        await fetchAs(sts),
        `access: ${named} ${token}, AWS_ROLE_ARN ${sts.AWS_ROLE_ARN}) gives no credentials: 403 AccessDenied (Not authorized); ${remedy}`,
      );
      assert.match(
        await fetchAs(agent),
        /^network: the workload identity \(AWS_CONTAINER_CREDENTIALS_FULL_URI http:\S+\) gives no credentials: .*; check the role/,
      );
      const file = path.join(root, "no token");
      assert.match(
        await fetchAs({ ...sts, AWS_WEB_IDENTITY_TOKEN_FILE: file }),
        /^access: the workload identity \(AWS_WEB_IDENTITY_TOKEN_FILE .*no token, .* gives no credentials: ENOENT/,
      );
      assert.match(
        await fetchAs({ ...sts, AWS_ENDPOINT_URL_STS: "http://127.0.0.1:1" }),
        /^network: the workload identity .* gives no credentials: connect ECONNREFUSED 127.0.0.1:1; check the role/,
      );
    });
  });

  test("The command takes s3:// and its environment, and refuses a revision", async () => {
    const out = fresh();
    const { status, stdout, stderr } = await command(MODEL_COMMAND, ["fetch", "s3://models/cut", "--out", out]);
    assert.deepEqual([status, stdout], [0, `${out}\n`], stderr);
    const refused = await command(MODEL_COMMAND, ["fetch", "s3://models/cut", "--revision", "main"]);
    assert.deepEqual(
      [refused.status, refused.stderr],
      [2, "--revision is main, and s3://models/cut has no revisions; leave it out\n"],
    );
  });

  /** A run folder with one checkpoint, of a file that takes several parts. */
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
  const push = (directory: string, url: string, env: NodeJS.ProcessEnv = {}, keepLast = 3) =>
    pushResults({ url, directory, keepLast, env: { ...server.env, ...env }, output, limits: { ...LIMITS, tries: 1 } });
  const pull = (url: string, directory: string, env: NodeJS.ProcessEnv = {}) =>
    pullResults({ url, directory, env: { ...server.env, ...env }, output, limits: { ...LIMITS, tries: 1 } });

  /** What is not pushed, and what a pull writes. */
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

  test("a pull into the folder of an earlier one brings what is new, also where a file has kept its length", async () => {
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
      await assert.rejects(push(run, url, proxy.env), { code: "network" });
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

  /** Passes requests on to the server, and answers those of `denied` as S3 does where a policy denies them. */
  async function denying(denied: (method: string, url: URL) => boolean) {
    const front = createHttpServer((request, response) => {
      const { method = "", headers } = request;
      const url = new URL(request.url!, server.endpoint);
      if (denied(method, url)) {
        request.resume();
        const why = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>";
        return void response.writeHead(403, { "content-type": "application/xml" }).end(method === "HEAD" ? "" : why);
      }
      const onward = requestHttp(url, { method, headers }, (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      });
      request.pipe(onward.on("error", () => response.destroy()));
    });
    await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
    const env = { AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${(front.address() as AddressInfo).port}` };
    return { env, [Symbol.dispose]: () => void front.close().closeAllConnections() };
  }

  const isList = (method: string, url: URL) => method === "GET" && url.searchParams.has("list-type");
  const rights: [right: string, denied: (method: string, url: URL) => boolean][] = [
    ["s3:ListBucket", isList],
    // Without s3:ListBucket S3 does not say of an object that it is not there.
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
    await push(run, url, {}, 1);
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
    const none = await command(RESULTS_COMMAND, ["push", root, "s3://results/command"]);
    assert.deepEqual(
      [none.status, none.stderr],
      [2, `${root} is no folder of a run (it has no trainingrun.yaml); give one\n`],
    );
  });
});
