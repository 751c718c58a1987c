import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import type { ServerResponse } from "node:http";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { convertFolder } from "../engine/model/convert.ts";
import { fetchModel } from "./fetch-model.ts";
import { COMMIT, type Fault, HubServer, refuse } from "./hub-server.fixture.ts";
import type { TransferLimits } from "./limits.ts";

const root = fs.mkdtempSync(path.join(os.tmpdir(), "fetch-model-"));
after(() => fs.rmSync(root, { recursive: true }));
const POLICY = fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url));
const WEIGHTS = fs.statSync(path.join(POLICY, "model.safetensors")).size;
const FAST = { firstWaitSeconds: 0.01, longestWaitSeconds: 0.02 };

interface Wish {
  repo?: string;
  revision?: string;
  out?: string;
  limits?: Partial<TransferLimits>;
  env?: NodeJS.ProcessEnv;
}

let count = 0;
/** Fetches from the server into a cache of its own; returns what was said too. */
async function fetchFrom(server: HubServer | undefined, wish: Wish = {}, cache = path.join(root, `cache ${count++}`)) {
  const lines: string[] = [];
  const { repo = "acme/model", revision = "main", out, limits, env } = wish;
  const fetched = await fetchModel({
    ...{ repo, revision, out, limits: { ...FAST, ...limits } },
    env: { LONGRUN_CACHE: cache, ...(server && { HF_ENDPOINT: server.endpoint }), ...env },
    output: { write: (text) => lines.push(text.trimEnd()) },
  });
  return { ...fetched, lines, cache };
}

function sameAs(server: HubServer, folder: string, names: string[]): void {
  assert.deepEqual(fs.readdirSync(folder).sort(), [...names, "fetched.json"].sort());
  for (const name of names)
    assert.ok(fs.readFileSync(path.join(folder, name)).equals(server.files.get(name)!), `${name} differs`);
}

const NEEDED = ["README.md", "config.json", "generation_config.json", "model.safetensors", "tokenizer.json"];
const ALL = [...NEEDED, "tokenizer_config.json"];

const isStorage = (request: { url?: string | undefined }) => request.url!.startsWith("/model");

/** Sends `bytes` of what is missing and cuts the connection. */
function cut(response: ServerResponse, body: Buffer, range: string | undefined, bytes: number): void {
  const start = Number(/\d+/.exec(range ?? "bytes=0-")![0]);
  const headers = { "content-length": body.length - start };
  if (start > 0)
    response.writeHead(206, { ...headers, "content-range": `bytes ${start}-${body.length - 1}/${body.length}` });
  else response.writeHead(200, headers);
  response.write(body.subarray(start, start + bytes), () => setTimeout(() => response.destroy(), 5));
}

test("what training needs is fetched and nothing else; the commit is written down; a second fetch brings nothing", async () => {
  const junk = { "pytorch_model.bin": "x", "modeling_model.py": "x", "consolidated.safetensors": "x", "a.pkl": "x" };
  await using server = await HubServer.of(POLICY, { ...junk, LICENSE: "free", "chat_template.jinja": "" });
  const first = await fetchFrom(server);
  sameAs(server, first.folder, [...ALL, "LICENSE", "chat_template.jinja"]);
  assert.equal(first.folder, path.join(first.cache, "models/acme/model", COMMIT));
  const { files, ...record } = JSON.parse(fs.readFileSync(path.join(first.folder, "fetched.json"), "utf8"));
  const { endpoint } = server;
  assert.deepEqual(record, { repo: "acme/model", revision: "main", commit: COMMIT, endpoint, complete: true });
  assert.equal(files.length, 8);
  assert.equal(first.fetchedBytes, first.bytes);

  const requests = server.asked.length;
  const again = await fetchFrom(server, {}, first.cache);
  assert.deepEqual([again.folder, again.fetchedBytes], [first.folder, 0]);
  assert.equal(server.asked.length, requests + 1, "only the branch is looked up");
  await fetchFrom(server, { revision: COMMIT }, first.cache);
  assert.equal(server.asked.length, requests + 1, "a commit needs no network");
});

test("shards are those that the index names", async () => {
  const shards = path.join(root, "shards");
  convertFolder(POLICY, shards, { shardBytes: 1.5e6 });
  await using server = await HubServer.of(shards, { "model-00009-of-00009.safetensors": "left over" });
  const names = fs.readdirSync(shards).filter((name) => !name.startsWith("corpus"));
  assert.ok(names.filter((name) => /^model-.*safetensors$/.test(name)).length > 2);
  const { folder } = await fetchFrom(server);
  sameAs(server, folder, names);

  server.files.delete("model-00002-of-00003.safetensors");
  await assert.rejects(fetchFrom(server), {
    code: "input",
    message:
      "acme/model: model.safetensors.index.json names model-00002-of-00003.safetensors, which is not in the repository",
  });
});

test("a connection that is cut again and again: each byte comes once", async () => {
  await using server = await HubServer.of(POLICY);
  server.faults.push((request, response, body) => {
    if (!isStorage(request) || body.length < WEIGHTS) return false;
    cut(response, body, request.headers.range, 300_000);
    return true;
  });
  const { folder, fetchedBytes, bytes } = await fetchFrom(server, { limits: { tries: 2 } });
  sameAs(server, folder, ALL);
  assert.equal(fetchedBytes, bytes);
  assert.ok(server.stored.filter(isPartial).length > 10);
  assert.ok(server.stored.filter(isPartial).every(({ path: url }) => isStorage({ url })));
});
const isPartial = ({ range }: { range: string | undefined }) => range !== undefined;

test("a failed fetch goes on where it ended; a branch that moved on does not change a folder that was begun", async () => {
  await using server = await HubServer.of(POLICY);
  const out = path.join(root, "continued");
  let left = 1;
  server.faults.push((request, response, body) => {
    if (!isStorage(request) || body.length === 0) return false;
    if (left-- > 0) cut(response, body, request.headers.range, 1_000_000);
    else response.destroy();
    return true;
  });
  await assert.rejects(fetchFrom(server, { out }), { code: "network" });
  const part = fs.readdirSync(out).find((name) => /^model\.safetensors\..*\.part$/.test(name))!;
  const { size: begun } = fs.statSync(path.join(out, part)); // what the cut connection let through
  assert.ok(begun > 0 && begun <= 1_000_000, `${begun}`);

  server.faults.length = 0;
  server.stored.length = 0;
  server.revisions = { main: "f".repeat(40), old: COMMIT };
  const { commit, fetchedBytes } = await fetchFrom(server, { out });
  sameAs(server, out, ALL);
  assert.equal(commit, COMMIT);
  assert.equal(fetchedBytes, WEIGHTS - begun);
  assert.deepEqual(
    server.stored.map(({ range }) => range),
    [`bytes=${begun}-`],
  );
  await assert.rejects(fetchFrom(server, { out, revision: "other" }), {
    message: `--out ${out} has acme/model at main (${COMMIT}); give a new or empty folder`,
  });
  const { lines } = await fetchFrom(undefined, { out, env: { HF_ENDPOINT: "http://127.0.0.1:1" } });
  assert.deepEqual(lines, [], "a whole folder needs no network");
});

test("a server without ranges is asked for the whole again, and not for ever", async () => {
  await using server = await HubServer.of(POLICY);
  let answers = 0;
  server.faults.push((request, response, body) => {
    if (!isStorage(request) || body.length === 0) return false;
    answers++;
    cut(response, body, undefined, 500_000);
    return true;
  });
  await assert.rejects(fetchFrom(server, { limits: { tries: 3 } }), { code: "network" });
  assert.ok(answers <= 6, `${answers} answers`);
  server.faults.length = 0;
  server.faults.push((request, response, body) => {
    if (!isStorage(request) || body.length === 0) return false;
    if (answers++ % 2 === 0) cut(response, body, undefined, 500_000);
    else response.writeHead(200, { "content-length": body.length }).end(body);
    return true;
  });
  const { folder } = await fetchFrom(server);
  sameAs(server, folder, ALL);
});

for (const [name, spoil] of [
  ["model.safetensors", (body: Buffer) => body.fill(7, 100, 200)],
  ["config.json", (body: Buffer) => body.fill(" ", 0, 1)],
] as const)
  test(`other bytes of ${name}: fetched anew once, then refused; nothing stays under its name`, async () => {
    await using server = await HubServer.of(POLICY);
    let wrong = 1;
    server.faults.push((request, response, body) => {
      if (!request.url!.includes(`/${name}`) || body.length === 0 || wrong-- <= 0) return false;
      response.writeHead(200, { "content-length": body.length }).end(spoil(Buffer.from(body)));
      return true;
    });
    const { folder, lines } = await fetchFrom(server);
    sameAs(server, folder, ALL);
    const problem = `${name} of acme/model came with another hash than ${server.endpoint} lists`;
    assert.ok(lines.includes(`${problem}; fetching it anew`), lines.join("\n"));

    wrong = 2;
    const out = path.join(root, `wrong ${name}`);
    await assert.rejects(fetchFrom(server, { out }), {
      code: "hash",
      message: `${problem}, 2 times; look at the disk and at the proxy or mirror between`,
    });
    assert.ok(!fs.readdirSync(out).some((file) => file.startsWith(name)), fs.readdirSync(out).join());
  });

test("a range that was not asked for is not taken", async () => {
  await using server = await HubServer.of(POLICY);
  let answers = 0;
  server.faults.push((request, response, body) => {
    if (!isStorage(request) || body.length === 0) return false;
    if (answers++ === 0) cut(response, body, undefined, 1_000_000);
    else if (answers > 3) return false;
    else
      response.writeHead(206, { "content-range": `bytes 5-${body.length - 1}/${body.length}` }).end(body.subarray(5));
    return true;
  });
  const { folder, lines } = await fetchFrom(server);
  sameAs(server, folder, ALL);
  assert.match(
    lines.join("\n"),
    /model.safetensors: the server sends bytes 5-\d+\/\d+ in place of bytes \d+-\/\d+; trying/,
  );
  assert.doesNotMatch(lines.join("\n"), /another hash/);
});

test("more bytes than are listed are refused", async () => {
  await using server = await HubServer.of(POLICY);
  server.faults.push((request, response, body) => {
    if (!isStorage(request) || body.length === 0) return false;
    response.end(Buffer.concat([body, body]));
    return true;
  });
  await assert.rejects(fetchFrom(server), {
    code: "hash",
    message: `model.safetensors comes with more than the ${WEIGHTS} bytes that the server lists`,
  });
});

test("the token goes to the hub and nowhere else, whoever sends there", async () => {
  await using server = await HubServer.of(POLICY);
  server.token = "hf_secret";
  // A page that is said to be at another origin is asked for there, without the token.
  server.faults.push((request, response, body) => {
    if (!request.url!.includes("/tree/") || request.url!.includes("cursor")) return false;
    const entries = JSON.parse(body.toString());
    response.writeHead(200, { link: `<${server.storage}/model-page>; rel="next"` }).end(JSON.stringify(entries));
    return true;
  });
  server.files.set("model-page", Buffer.from("[]"));
  await fetchFrom(server, { env: { HF_TOKEN: " hf_secret\n" } }).catch((error) => assert.equal(error.code, "input"));
  assert.ok(server.stored.some(({ path: url }) => url === "/model-page"));
  server.faults.length = 0;
  server.files.delete("model-page");
  fs.writeFileSync(path.join(root, "token"), "hf_secret\n");
  const { folder } = await fetchFrom(server, { env: { HF_TOKEN_PATH: path.join(root, "token") } });
  sameAs(server, folder, ALL);
  assert.ok(server.asked.every(({ authorization }) => authorization === "Bearer hf_secret"));
  assert.ok(server.stored.length > 2);
  assert.ok(server.stored.every(({ authorization }) => authorization === undefined));
});

const PRIVATE = "that is public; check the name, or set HF_TOKEN (<hub>/settings/tokens) for a private one";
const refusals: [what: string, wish: Wish, change: (server: HubServer) => void, code: string, message: string][] = [
  ["no such repository", { repo: "acme/none" }, () => {}, "input", `<hub> has no model acme/none ${PRIVATE}`],
  [
    "no such repository for a token",
    { repo: "acme/none", env: { HF_TOKEN: "hf_good" } },
    (server) => {
      server.token = "hf_good";
    },
    "input",
    "<hub> has no model acme/none that the token in HF_TOKEN may read; check the name",
  ],
  [
    "no such revision",
    { revision: "v9" },
    () => {},
    "input",
    "acme/model has no revision v9; give a branch, tag or commit of <hub>/acme/model/commits/main",
  ],
  [
    "a token that the hub does not know",
    { env: { HF_TOKEN: "hf_old" } },
    (server) => {
      server.token = "hf_good";
    },
    "access",
    "<hub> refuses the token in HF_TOKEN (Invalid credentials in Authorization header); make a new one at <hub>/settings/tokens",
  ],
  [
    "a gated model",
    {},
    (server) => {
      server.gated = true;
    },
    "access",
    "acme/model is gated: accept its licence at <hub>/acme/model and set HF_TOKEN to a token of that account (<hub>/settings/tokens)",
  ],
  [
    "a gated model, whose licence the account has not accepted",
    { env: { HF_TOKEN: "hf_other" } },
    (server) => {
      server.gated = true;
    },
    "access",
    "acme/model is gated: accept its licence at <hub>/acme/model with the account of HF_TOKEN, which has no access yet",
  ],
  [
    "a model without safetensors",
    {},
    (server) => {
      server.files.delete("model.safetensors");
      server.files.set("pytorch_model.bin", Buffer.from("x"));
    },
    "input",
    "acme/model has no model.safetensors, only pytorch_model.bin; longrun reads safetensors alone: fetch a model with it",
  ],
  [
    "a model without tokenizer.json",
    {},
    (server) => {
      server.files.delete("tokenizer.json");
    },
    "input",
    "acme/model has no tokenizer.json, which training needs; fetch a model with it",
  ],
  [
    "another architecture",
    {},
    (server) => {
      server.files.set("config.json", Buffer.from('{"model_type":"gemma"}'));
    },
    "input",
    'longrun cannot train acme/model: config.json: model_type is "gemma"; supported are qwen2, qwen3 and llama',
  ],
  [
    "no hub at all",
    {},
    (server) => {
      server.faults.push((_, response) => Boolean(response.end("<html>")));
    },
    "input",
    "<hub> does not answer as the Hugging Face hub does; check HF_ENDPOINT, or unset it for https://huggingface.co",
  ],
  [
    "a name that is none",
    { repo: "../model" },
    () => {},
    "input",
    "../model is no name of a repository; give OWNER/NAME, such as Qwen/Qwen2.5-3B-Instruct, s3://BUCKET/PREFIX or oci://HOST/REPOSITORY:TAG",
  ],
  [
    "a revision that is none",
    { revision: "a/../b" },
    () => {},
    "input",
    "--revision is a/../b; give a branch, tag or commit",
  ],
  [
    "an endpoint that is none",
    { env: { HF_ENDPOINT: "huggingface.co" } },
    () => {},
    "input",
    "HF_ENDPOINT is not an address such as https://huggingface.co; correct or unset it",
  ],
  [
    "a folder of something else",
    { out: POLICY },
    () => {},
    "input",
    `--out ${POLICY} has files that no fetch has brought; give a new or empty folder`,
  ],
];
for (const [what, wish, change, code, message] of refusals)
  test(`${what} is refused in one line, at once`, async () => {
    await using server = await HubServer.of(POLICY);
    change(server);
    const cache = path.join(root, `refused ${count++}`);
    await assert.rejects(fetchFrom(server, wish, cache), {
      ...{ name: "TransferError", code },
      message: message.replaceAll("<hub>", server.endpoint),
    });
    const left = fs.existsSync(cache) ? fs.globSync("models/*/*/*/*", { cwd: cache }) : [];
    assert.deepEqual(
      left.filter((name) => name.endsWith("safetensors")),
      [],
    );
  });

test("429 with Retry-After is waited for; a wait that is too long ends the fetch", async () => {
  await using server = await HubServer.of(POLICY);
  let refused = 1;
  const tooMany =
    (seconds: string): Fault =>
    (request, response) => {
      if (!request.url!.includes("/tree/") || refused-- <= 0) return false;
      refuse(response, 429, "", "", { "retry-after": seconds });
      return true;
    };
  server.faults = [tooMany("1")];
  const before = performance.now();
  const { lines } = await fetchFrom(server);
  assert.ok(performance.now() - before >= 1000);
  const said = `${server.endpoint} answers 429, too many requests; with a token in HF_TOKEN it allows more`;
  assert.ok(lines.includes(`${said}; trying again in 1 s`), lines.join("\n"));
  refused = 1;
  server.faults = [tooMany("3000")];
  await assert.rejects(fetchFrom(server), { code: "network", message: `${said}; it asks to wait for 3000 s` });
});

test("answers of 503, silence, and signed addresses that have expired are tried again", async () => {
  await using server = await HubServer.of(POLICY);
  const once = new Set<string>();
  const first = (key: string) => !once.has(key) && once.add(key).has(key);
  const refuseWith = (response: ServerResponse, status: number) => {
    refuse(response, status);
    return true;
  };
  server.faults = [
    (request, response) => request.url!.includes("/revision/") && first("503") && refuseWith(response, 503),
    (request, response, body) => isStorage(request) && body.length > 0 && first("403") && refuseWith(response, 403),
    (request, response, body) => {
      if (!isStorage(request) || body.length === 0 || !first("silence")) return false;
      response.writeHead(200, { "content-length": body.length }).write(body.subarray(0, 1000));
      return true;
    },
  ];
  const { folder, lines } = await fetchFrom(server, { limits: { silenceSeconds: 0.5 } });
  sameAs(server, folder, ALL);
  assert.equal(once.size, 3);
  assert.match(lines.join("\n"), /answers 503; trying again/);
  assert.match(lines.join("\n"), /where http:\S+ keeps the files, answers 403; allow this host/);
  assert.match(lines.join("\n"), /silent for 0.5 s/);
});

test("no network: one line with the remedy after the tries that are allowed", async () => {
  const server = await HubServer.of(POLICY);
  const { endpoint } = server;
  const { host } = new URL(endpoint);
  await server[Symbol.asyncDispose]();
  const env = { HF_ENDPOINT: endpoint };
  await assert.rejects(fetchFrom(undefined, { env, limits: { tries: 2 } }), {
    code: "network",
    message: `cannot reach ${host}: connect ECONNREFUSED ${host}; check the network, or set HTTPS_PROXY for a proxy, HF_ENDPOINT for a mirror`,
  });
});

test("two fetches of one model at once: the second waits for the first", async () => {
  await using server = await HubServer.of(POLICY);
  const cache = path.join(root, "shared cache");
  const both = await Promise.all([fetchFrom(server, {}, cache), fetchFrom(server, {}, cache)]);
  assert.deepEqual(both.map(({ fetchedBytes }) => fetchedBytes > 0).sort(), [false, true]);
  assert.equal(server.stored.filter(({ path: url }) => isStorage({ url })).length, 1);
  assert.ok(both.some(({ lines }) => lines.some((line) => /another process fetches into/.test(line))));
});

test("files come side by side, as many as the limit says", async () => {
  for (const filesAtOnce of [1, 3]) {
    await using server = await HubServer.of(POLICY);
    let now = 0;
    let most = 0;
    server.faults.push((request, response, body) => {
      if (request.url!.startsWith("/api/") || body.length === 0) return false;
      most = Math.max(most, ++now);
      void sleep(100).then(() => {
        now--;
        response.writeHead(200, { "content-length": body.length }).end(body);
      });
      return true;
    });
    await fetchFrom(server, { limits: { filesAtOnce } });
    assert.equal(most, filesAtOnce);
  }
});

/** A file system of `bytes` to fill; undefined where this machine may mount none. */
function smallDisk(bytes: number): ({ folder: string } & Disposable) | undefined {
  const folder = fs.mkdtempSync(path.join(root, "disk "));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${bytes}`, "longrun-test", folder], { stdio: "ignore" });
  } catch {
    return undefined;
  }
  return { folder, [Symbol.dispose]: () => void execFileSync("umount", [folder]) };
}

test("a disk that is too small is refused before, one that fills up is named; the fetch goes on when there is room", async (t) => {
  await using server = await HubServer.of(POLICY);
  using disk = smallDisk(2_000_000);
  if (!disk) return t.skip("needs root, to mount a small file system");
  await assert.rejects(fetchFrom(server, { out: path.join(disk.folder, "model") }), {
    code: "disk",
    message: new RegExp(
      `^acme/model at ${COMMIT} needs 4.21 MB more in .*, where 1.\\d+ MB are free; make room, or give --out on`,
    ),
  });
  assert.deepEqual(
    server.stored.filter(({ path: url }) => isStorage({ url })),
    [],
  );

  using larger = smallDisk(6_000_000);
  const out = path.join(larger!.folder, "model");
  const filler = path.join(larger!.folder, "filler");
  server.faults.push((request, _, body) => {
    if (isStorage(request) && body.length > 0 && !fs.existsSync(filler))
      fs.writeFileSync(filler, Buffer.alloc(3_000_000));
    return false;
  });
  await assert.rejects(fetchFrom(server, { out }), {
    code: "disk",
    message: `no space left on the disk of ${out}; make room and fetch again, it goes on from here`,
  });
  fs.writeFileSync(filler, "");
  const { fetchedBytes } = await fetchFrom(server, { out });
  assert.ok(fetchedBytes < WEIGHTS, `${fetchedBytes}`);
  sameAs(server, out, ALL);
});
