/** Tests which files a fetch brings, where it puts them, and what it sends. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { convertFolder } from "../engine/model/convert.ts";
import { ALL, fetchFrom, isStorage, POLICY, root, sameAs, WEIGHTS } from "./fetch.fixture.ts";
import { COMMIT, HubServer } from "./hub-server.fixture.ts";

test("a fetch brings the files for training alone and records the commit, and a second fetch brings nothing", async () => {
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

test("a fetch brings the shards that the index names", async () => {
  const shards = path.join(root, "shards");
  convertFolder(POLICY, shards, { shardBytes: 1.5e6 });
  await using server = await HubServer.of(shards, { "model-00009-of-00009.safetensors": "left over" });
  // a fetch leaves out code
  const names = fs.readdirSync(shards).filter((name) => !name.startsWith("corpus") && !name.endsWith(".py"));
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
test("a fetch sends the token to the hub alone, also if a server gives links to other hosts", async () => {
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
test("the second of two fetches of one model waits for the first", async () => {
  await using server = await HubServer.of(POLICY);
  const cache = path.join(root, "shared cache");
  const both = await Promise.all([fetchFrom(server, {}, cache), fetchFrom(server, {}, cache)]);
  assert.deepEqual(both.map(({ fetchedBytes }) => fetchedBytes > 0).sort(), [false, true]);
  assert.equal(server.stored.filter(({ path: url }) => isStorage({ url })).length, 1);
  assert.ok(both.some(({ lines }) => lines.some((line) => /another process fetches into/.test(line))));
});

test("as many files are fetched at once as the limit allows", async () => {
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

test("a fetch refuses a disk that is too small, and goes on after a full disk once there is room", async (t) => {
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
