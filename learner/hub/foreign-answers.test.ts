/** Answers of servers that are no hub, no registry and no S3, or that send without end: each is refused in one line. */
import assert from "node:assert/strict";
import fs from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { describe, test } from "node:test";
import { FETCH_RECORD } from "../engine/index.ts";
import { parseManifest } from "../results/manifest.ts";
import { fetchFrom, POLICY, root } from "./fetch.fixture.ts";
import { COMMIT, type Fault, HubServer } from "./hub-server.fixture.ts";

const isTree = ({ url }: IncomingMessage) => url!.includes("/tree/");
const treeOf =
  (change: (entries: object[]) => unknown): Fault =>
  (request, response, body) =>
    isTree(request) && Boolean(response.end(JSON.stringify(change(JSON.parse(body.toString())))));
const NO_HUB = /does not answer as the Hugging Face hub does; check HF_ENDPOINT/;

async function* endless() {
  for (;;) yield Buffer.alloc(1 << 16, "[");
}
const sendEndless = (response: ServerResponse) => void pipeline(endless(), response).catch(() => {});

describe("a hub is refused whose list of files", () => {
  const file = { type: "file", path: "config.json", size: 3, oid: "a".repeat(40) };
  const lists: [what: string, change: (entries: object[]) => unknown][] = [
    ["is null", () => null],
    ["is an object", () => ({})],
    ["has a null", (entries) => [null, ...entries]],
    ["has a list", () => [[]]],
    ["has a text", () => "config.json"],
    ["has an entry without a type", () => [{ path: "config.json" }]],
    ["has a file without a name", () => [{ type: "file" }]],
    ["has a file with a name that is a number", () => [{ ...file, path: 5 }]],
    ["has a file without a size", () => [{ ...file, size: undefined }]],
    ["has a file of negative size", () => [{ ...file, size: -5 }]],
    ["has a file whose size is a text", () => [{ ...file, size: "3" }]],
    ["has a file without a hash", () => [{ ...file, oid: null }]],
    ["has a large file without a hash", () => [{ ...file, lfs: {} }]],
    ["has a large file whose facts are a text", () => [{ ...file, lfs: "x" }]],
    ["has a large file of negative size", () => [{ ...file, lfs: { oid: "a".repeat(64), size: -1 } }]],
  ];
  for (const [what, change] of lists)
    test(what, async () => {
      await using server = await HubServer.of(POLICY);
      server.faults.push(treeOf(change));
      await assert.rejects(fetchFrom(server), { name: "TransferError", code: "input", message: NO_HUB });
    });

  test("has pages without end", async () => {
    await using server = await HubServer.of(POLICY);
    let pages = 0;
    server.faults.push((request, response, body) => {
      if (!isTree(request)) return false;
      const next = `${server.endpoint}/api/models/acme/model/tree/${COMMIT}?cursor=${pages++}`;
      return Boolean(response.writeHead(200, { link: `<${next}>; rel="next"` }).end(body));
    });
    const message = `${server.endpoint} sends more than 20 pages of files, which no list of a model's files needs; check the address`;
    await assert.rejects(fetchFrom(server, { limits: { listPages: 20 } }), { name: "TransferError", message });
    assert.equal(pages, 20);
  });

  for (const where of ["/tree/", "/revision/"])
    test(`has no end: ${where}`, async () => {
      await using server = await HubServer.of(POLICY);
      server.faults.push((request, response) => {
        const isIt = request.url!.includes(where);
        if (isIt) sendEndless(response);
        return isIt;
      });
      const message = /sends an answer of more than \d.* MB, which no list .*; check the address$/;
      const limits = { answerBytes: 2 ** 20, answerSeconds: 20 };
      await assert.rejects(fetchFrom(server, { limits }), { name: "TransferError", code: "input", message });
    });
});

test("files whose names lead out of the folder, or are no names, are not fetched", async () => {
  await using server = await HubServer.of(POLICY);
  const names = ["../evil.json", "..\\evil.json", "/etc/evil", "..safetensors", "e\0.safetensors", "", "x".repeat(300)];
  const evil = names.map((name) => ({ type: "file", path: name, size: 3, oid: "b".repeat(40) }));
  server.faults.push((request, response) => {
    if (!isTree(request) || request.url!.includes("cursor")) return false;
    const link = `<${server.endpoint}${request.url}&cursor=0>; rel="next"`;
    return Boolean(response.writeHead(200, { link }).end(JSON.stringify(evil)));
  });
  const { folder } = await fetchFrom(server);
  assert.ok(!fs.readdirSync(folder).some((name) => /evil|^\.\.|x{9}/.test(name)));
  server.files.delete("model.safetensors");
  server.files.set("model.safetensors.index.json", Buffer.from('{"weight_map":{"a":"e\\u0000.safetensors"}}'));
  await assert.rejects(fetchFrom(server), { name: "TransferError", code: "input", message: /not in the repository$/ });
});

test("a damaged record of a fetch is named", async () => {
  await using server = await HubServer.of(POLICY);
  for (const [index, text] of ["null", "[]", '{"commit":"a"}', '{"commit":"a","files":[null]}', "{"].entries()) {
    const out = path.join(root, `damaged ${index}`);
    fs.mkdirSync(out);
    fs.writeFileSync(path.join(out, FETCH_RECORD), text);
    const expected = { name: "TransferError", message: /fetched.json is damaged; remove the folder/ };
    await assert.rejects(fetchFrom(server, { out }), expected, text);
  }
});

/** Calls `use` with the address of a server that answers so. */
async function served(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  use: (host: string) => unknown,
) {
  const server = createServer(answer);
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  try {
    await use(`127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

describe("a registry is refused", () => {
  const TITLE = "org.opencontainers.image.title";
  const layer = { digest: `sha256:${"a".repeat(64)}`, size: 3, annotations: { [TITLE]: "config.json" } };
  const fetchOci = (host: string, limits = {}) =>
    fetchFrom(undefined, { repo: `oci://${host}/models/tiny:v1`, limits });
  for (const [what, manifest] of [
    ["null", null],
    ["layers that are null", { layers: null }],
    ["a layer that is null", { layers: [null] }],
    ["a layer without a digest", { layers: [{ ...layer, digest: undefined }] }],
    ["a layer of negative size", { layers: [{ ...layer, size: -5 }] }],
    ["a layer whose name is a number", { layers: [{ ...layer, annotations: { [TITLE]: 5 } }] }],
    ["a layer whose annotations are null", { layers: [{ ...layer, annotations: null }] }],
    ["a layer whose name leads out", { layers: [{ ...layer, annotations: { [TITLE]: "../config.json" } }] }],
  ] as const)
    test(`whose manifest is or has ${what}`, () =>
      served(
        (_, response) => response.end(JSON.stringify(manifest)),
        (host) =>
          assert.rejects(fetchOci(host), { name: "TransferError", code: "input", message: /has no files: it is/ }),
      ));

  for (const token of ["null", "{}", "[]", '{"token":5}', '{"token":"a\\nb"}', "<html>"])
    test(`whose token is ${token}`, () =>
      served(
        (request, response) => {
          if (request.url!.startsWith("/token")) return void response.end(token);
          const realm = `http://${request.headers.host}/token`;
          response.writeHead(401, { "www-authenticate": `Bearer realm="${realm}",service="s"` }).end();
        },
        (host) =>
          assert.rejects(fetchOci(host), { name: "TransferError", code: "input", message: /gives no token for oci:/ }),
      ));

  test("whose manifest has no end", () =>
    served(
      (_, response) => sendEndless(response),
      (host) =>
        assert.rejects(fetchOci(host, { answerBytes: 2 ** 20 }), {
          ...{ name: "TransferError", code: "input", message: /sends an answer of more than / },
        }),
    ));
});

describe("a bucket is refused", () => {
  const fetchS3 = (host: string, limits = {}) =>
    fetchFrom(undefined, {
      ...{ repo: "s3://models/tiny", limits: { tries: 1, ...limits } },
      env: { AWS_ENDPOINT_URL_S3: `http://${host}`, AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b" },
    });
  const listed = (content: string) => `<?xml version="1.0"?><ListBucketResult>${content}</ListBucketResult>`;

  test("whose list has pages without end", () => {
    let pages = 0;
    return served(
      (_, response) => {
        const more = `<IsTruncated>true</IsTruncated><NextContinuationToken>${pages++}</NextContinuationToken>`;
        response.writeHead(200, { "content-type": "application/xml" }).end(listed(more));
      },
      async (host) => {
        const message = /^s3:\/\/models sends more than 20 pages of files/;
        await assert.rejects(fetchS3(host, { listPages: 20 }), { name: "TransferError", code: "input", message });
        assert.equal(pages, 21);
      },
    );
  });

  test("whose objects have no keys", () =>
    served(
      (_, response) =>
        response
          .writeHead(200, { "content-type": "application/xml" })
          .end(listed("<Contents><Size>3</Size></Contents>")),
      (host) => assert.rejects(fetchS3(host), { name: "TransferError", code: "input", message: /there is nothing in/ }),
    ));
});

describe("a manifest of results is refused that has", () => {
  const file = { name: "state.json", bytes: 3, sha256: "a".repeat(64) };
  const folder = { at: "run/a", path: ".", files: [file] };
  const checkpoint = { at: "checkpoints/a", path: "checkpoints/1-000001", files: [file], iteration: 1 };
  const whole = { format: 1, run: "r", pushedAt: "2026-11-01T00:00:00Z", checkpoints: [checkpoint], folders: [folder] };
  const parse = (manifest: unknown) => parseManifest(JSON.stringify(manifest), "s3://b/results.json");
  const withFile = (change: object) => ({ ...whole, folders: [{ ...folder, files: [{ ...file, ...change }] }] });

  test("nothing wrong: it is read", () => assert.deepEqual(parse(whole), whole));

  for (const [what, manifest] of [
    ["null", null],
    ["another format", { ...whole, format: 2 }],
    ["no run", { ...whole, run: undefined }],
    ["no time", { ...whole, pushedAt: null }],
    ["checkpoints that are null", { ...whole, checkpoints: null }],
    ["folders that are an object", { ...whole, folders: {} }],
    ["a checkpoint that is null", { ...whole, checkpoints: [null] }],
    ["a checkpoint without an iteration", { ...whole, checkpoints: [{ ...checkpoint, iteration: undefined }] }],
    ["a folder that is null", { ...whole, folders: [null] }],
    ["a folder without a place", { ...whole, folders: [{ ...folder, at: null }] }],
    ["a folder without a path", { ...whole, folders: [{ ...folder, path: undefined }] }],
    ["a folder whose files are null", { ...whole, folders: [{ ...folder, files: null }] }],
    ["a folder whose files are a text", { ...whole, folders: [{ ...folder, files: "x" }] }],
    ["a file that is null", { ...whole, folders: [{ ...folder, files: [null] }] }],
    ["a file without a name", withFile({ name: undefined })],
    ["a file whose name leads out", withFile({ name: "../x" })],
    ["a file of negative size", withFile({ bytes: -1 })],
    ["a file without a size", withFile({ bytes: null })],
    ["a file without a hash", withFile({ sha256: undefined })],
    ["a file whose hash leads out", withFile({ sha256: "../../x" })],
  ] as const)
    test(what, () => {
      const message = /^s3:\/\/b\/results.json is no manifest that this version of longrun reads/;
      assert.throws(() => parse(manifest), { name: "TransferError", code: "input", message });
    });
});
