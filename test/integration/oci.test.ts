/** `longrun model fetch oci://…` with a real registry, alone and behind a server of tokens. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fs from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { fetchModel } from "../../learner/hub/fetch-model.ts";
import { missingRegistry, OciRegistry } from "../cluster/registry.ts";

const POLICY = fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url));
const WEIGHTS = fs.readFileSync(path.join(POLICY, "model.safetensors"));
const skip = missingRegistry();
const root = fs.mkdtempSync(path.join(os.tmpdir(), "oci-test-"));
after(() => fs.rmSync(root, { recursive: true }));

let registry: OciRegistry;
let digest: string;
let count = 0;
const fresh = () => path.join(root, `folder ${count++}`);
const policyFiles = () =>
  Object.fromEntries(fs.readdirSync(POLICY).map((name) => [name, fs.readFileSync(path.join(POLICY, name))]));

async function fetchFrom(reference: string, out: string, env: NodeJS.ProcessEnv = {}, tries = 3) {
  const lines: string[] = [];
  const output = { write: (text: string) => lines.push(text.trimEnd()) };
  const limits = { firstWaitSeconds: 0.01, longestWaitSeconds: 0.02, tries };
  const around = { LONGRUN_CACHE: root, HOME: root, ...env };
  return { ...(await fetchModel({ repo: `oci://${reference}`, out, env: around, output, limits })), lines };
}

/** Passes requests on to the registry; `answer` may answer in its place, and returns true then. */
async function front(answer: (request: IncomingMessage, response: ServerResponse, host: string) => boolean) {
  const server = createServer(async (request, response) => {
    const { port } = server.address() as AddressInfo;
    if (answer(request, response, `127.0.0.1:${port}`)) return;
    const { range, accept } = request.headers;
    const headers = { ...(range && { range }), ...(accept && { accept }) };
    const passed = await fetch(`http://${registry.host}${request.url}`, { headers });
    response.writeHead(passed.status, Object.fromEntries(passed.headers)).end(Buffer.from(await passed.arrayBuffer()));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { host, [Symbol.dispose]: () => void server.close().closeAllConnections() };
}

describe("a registry", { skip }, () => {
  before(async () => {
    registry = await OciRegistry.start();
    digest = await registry.push("team/policy", "v1", { ...policyFiles(), "pytorch_model.bin": "x" });
  });
  after(async () => registry[Symbol.asyncDispose]());

  test("A fetch by tag or digest brings what training needs; a second fetch needs no network", async () => {
    const out = fresh();
    const { commit, fetchedBytes, bytes } = await fetchFrom(`${registry.host}/team/policy:v1`, out);
    assert.deepEqual([commit, fetchedBytes], [digest.slice(0, 40), bytes]);
    assert.ok(fs.readFileSync(path.join(out, "model.safetensors")).equals(WEIGHTS));
    assert.ok(!fs.existsSync(path.join(out, "pytorch_model.bin")));
    const byDigest = await fetchFrom(`${registry.host}/team/policy@sha256:${digest}`, fresh());
    assert.equal(byDigest.commit, commit);
    const { fetchedBytes: again } = await fetchFrom(`${registry.host}/team/policy:v1`, out, { HTTP_PROXY: "http://x" });
    assert.equal(again, 0);
  });

  test("The fetch continues a blob where its transfer broke off", async () => {
    const ranges: (string | undefined)[] = [];
    const blob = `sha256:${createHash("sha256").update(WEIGHTS).digest("hex")}`;
    using proxy = await front((request, response) => {
      if (!request.url!.endsWith(blob)) return false;
      ranges.push(request.headers.range);
      if (ranges.length > 1) return false;
      const cut = () => setTimeout(() => response.destroy(), 20);
      response.writeHead(200, { "content-length": WEIGHTS.length }).write(WEIGHTS.subarray(0, 1_000_000), cut);
      return true;
    });
    const out = fresh();
    const { fetchedBytes, bytes } = await fetchFrom(`${proxy.host}/team/policy:v1`, out);
    assert.ok(fs.readFileSync(path.join(out, "model.safetensors")).equals(WEIGHTS));
    assert.deepEqual([ranges[0], ranges.length, fetchedBytes], [undefined, 2, bytes]);
    assert.match(ranges[1]!, /^bytes=[1-9]\d*-$/);
  });

  test("The fetch gets a token with the name and password, and another when it has expired", async () => {
    const config = path.join(root, "docker");
    fs.mkdirSync(config, { recursive: true });
    /** Requests that each token is still good for. */
    const left = new Map<string, number>();
    using proxy = await front((request, response, host) => {
      const { authorization } = request.headers;
      if (request.url!.startsWith("/token")) {
        const isKnown = authorization === `Basic ${Buffer.from("me:secret").toString("base64")}`;
        const token = `token-${left.size}`;
        if (isKnown) left.set(`Bearer ${token}`, 3);
        assert.match(request.url!, /service=registry&scope=repository%3Ateam%2Fpolicy%3Apull/);
        return Boolean(isKnown ? response.end(JSON.stringify({ token })) : response.writeHead(401).end());
      }
      const uses = left.get(authorization ?? "") ?? 0;
      left.set(authorization ?? "", uses - 1);
      if (uses > 0) return false;
      const challenge = `Bearer realm="http://${host}/token",service="registry",scope="repository:team/policy:pull"`;
      return Boolean(response.writeHead(401, { "www-authenticate": challenge }).end());
    });
    const auths = { [proxy.host]: { auth: Buffer.from("me:secret").toString("base64") } };
    fs.writeFileSync(path.join(config, "config.json"), JSON.stringify({ auths }));
    const out = fresh();
    await fetchFrom(`${proxy.host}/team/policy:v1`, out, { DOCKER_CONFIG: config });
    assert.ok(fs.readFileSync(path.join(out, "model.safetensors")).equals(WEIGHTS));
    assert.ok(left.size >= 3, [...left.keys()].join(" "));
    await assert.rejects(fetchFrom(`${proxy.host}/team/policy:v1`, fresh()), {
      code: "access",
      message: new RegExp(`refuses oci://${proxy.host}/team/policy:v1: 401; log in to ${proxy.host} \\(oras login`),
    });
  });

  test("A reference that is malformed, missing or no artifact of files is refused in one line", async () => {
    await registry.push("team/empty", "v1", {});
    await registry.push("team/part", "v1", { "config.json": "{}" });
    const refusals: [reference: string, code: string, message: RegExp][] = [
      [
        `${registry.host}/team/empty:v1`,
        "input",
        /has no files: it is an image, or an index of several; push the model/,
      ],
      [`${registry.host}/team/part:v1`, "input", /team\/part:v1 has no model\.safetensors/],
      [`${registry.host}/team/policy:v2`, "input", /has no oci:\/\/.*\/team\/policy:v2; check the name and the tag$/],
      ["qwen:v1", "input", /^oci:\/\/qwen:v1 is no artifact of a registry; give oci:\/\/HOST\/REPOSITORY:TAG or/],
    ];
    for (const [reference, code, message] of refusals)
      await assert.rejects(fetchFrom(reference, fresh()), (error: Error & { code: string }) => {
        assert.equal(error.code, code, error.message);
        assert.match(error.message, message);
        return true;
      });
  });
});
