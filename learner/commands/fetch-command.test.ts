/** `longrun model fetch` as a process: its output, its exit status, its end by a kill, and proxies. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import fs from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { until } from "../../test/until.ts";
import { COMMIT, HubServer } from "../hub/hub-server.fixture.ts";

const root = fs.mkdtempSync(path.join(os.tmpdir(), "fetch-command-"));
after(() => fs.rmSync(root, { recursive: true }));
const POLICY = fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url));
const PROGRAM = fileURLToPath(new URL("./model-command.ts", import.meta.url));
const PROXIES = /^(https?|no|all)_proxy$/i;

/** This process' environment without its proxies and token. */
const surroundings = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !PROXIES.test(name) && !name.startsWith("HF_")),
);

function fetchCommand(args: string[], env: NodeJS.ProcessEnv = {}) {
  return new Promise<{ status: number; stdout: string; stderr: string }>((resolve) => {
    const options = { env: { ...surroundings, LONGRUN_CACHE: path.join(root, "cache"), ...env } };
    execFile(process.execPath, [PROGRAM, "fetch", ...args], options, (error, stdout, stderr) =>
      resolve({ status: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}

test("the command prints the folder or one object, and exits 2 for errors that a person must mend", async () => {
  await using server = await HubServer.of(POLICY);
  const env = { HF_ENDPOINT: server.endpoint };
  const folder = path.join(root, "cache/models/acme/model", COMMIT);
  const fetched = await fetchCommand(["acme/model"], env);
  assert.deepEqual([fetched.status, fetched.stdout], [0, `${folder}\n`], fetched.stderr);
  const { stdout } = await fetchCommand(["acme/model", "--json"], env);
  const { bytes, ...facts } = JSON.parse(stdout);
  assert.deepEqual(facts, { repo: "acme/model", revision: "main", commit: COMMIT, folder, fetchedBytes: 0 });
  assert.ok(bytes > 4e6);
  const none = await fetchCommand(["acme/none"], env);
  assert.deepEqual([none.status, none.stdout], [2, ""]);
  assert.match(none.stderr, /^http\S+ has no model acme\/none that is public; check the name[^\n]*\n$/);
  assert.match(
    (await fetchCommand([])).stderr,
    /^error: missing required argument 'MODEL'\nlongrun help model says more\n$/,
  );
});

test("a fetch that was killed goes on where it ended", async () => {
  await using server = await HubServer.of(POLICY);
  let isSlow = true;
  server.faults.push((request, response, body) => {
    if (!isSlow || !request.url!.startsWith("/model.safetensors") || body.length === 0) return false;
    response.writeHead(200, { "content-length": body.length }).write(body.subarray(0, 2_000_000));
    return true;
  });
  const out = path.join(root, "killed");
  const env = { ...surroundings, HF_ENDPOINT: server.endpoint };
  using child = spawn(process.execPath, [PROGRAM, "fetch", "acme/model", "--out", out], { env, stdio: "ignore" });
  const ended = new Promise((resolve) => child.once("close", resolve));
  const part = () =>
    fs.existsSync(out) ? fs.readdirSync(out).find((name) => /^model.safetensors.*part$/.test(name)) : undefined;
  const size = () => (part() === undefined ? 0 : fs.statSync(path.join(out, part()!)).size);
  await until(() => size() >= 2_000_000, "two megabytes are on disk");
  child.kill("SIGKILL");
  await ended;

  isSlow = false;
  server.stored.length = 0;
  const again = await fetchCommand(["acme/model", "--out", out], env);
  assert.deepEqual([again.status, again.stdout], [0, `${out}\n`], again.stderr);
  assert.deepEqual(
    server.stored.map(({ range }) => range),
    ["bytes=2000000-"],
  );
  const fetched = fs.readFileSync(path.join(out, "model.safetensors"));
  assert.ok(fetched.equals(server.files.get("model.safetensors")!));
});

/** A proxy that tunnels every request to the server, or refuses it with a status. */
async function startProxy(target: string, status: number) {
  const asked: { host: string; authorization: string | undefined }[] = [];
  const proxy = createServer();
  proxy.on("connect", (request, socket) => {
    asked.push({ host: request.url!, authorization: request.headers["proxy-authorization"] });
    socket.on("error", () => {});
    if (status !== 200) return socket.end(`HTTP/1.1 ${status} no\r\n\r\n`);
    const { hostname, port } = new URL(request.url!.startsWith("hub.test:") ? target : `http://${request.url}`);
    const onward = connect(Number(port), hostname, () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      onward.pipe(socket).pipe(onward);
    });
    onward.on("error", () => socket.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port } = proxy.address() as AddressInfo;
  return { asked, port, [Symbol.dispose]: () => void proxy.close().closeAllConnections() };
}

test("a fetch uses the environment's proxy with its name and password, except for hosts in NO_PROXY", async () => {
  await using server = await HubServer.of(POLICY);
  using proxy = await startProxy(server.endpoint, 200);
  const address = `http://me:secret@127.0.0.1:${proxy.port}`;
  const out = path.join(root, "proxied");
  const env = { HF_ENDPOINT: "http://hub.test", HTTP_PROXY: address };
  const fetched = await fetchCommand(["acme/model", "--out", out], env);
  assert.equal(fetched.status, 0, fetched.stderr);
  assert.ok(fs.existsSync(path.join(out, "model.safetensors")));
  const authorization = `Basic ${Buffer.from("me:secret").toString("base64")}`;
  assert.ok(proxy.asked.length > 0);
  assert.ok(proxy.asked.every((each) => each.authorization === authorization));
  assert.ok(proxy.asked.some(({ host }) => host === "hub.test:80"));

  proxy.asked.length = 0;
  const direct = { HF_ENDPOINT: server.endpoint, HTTP_PROXY: address, NO_PROXY: "127.0.0.1" };
  const past = await fetchCommand(["acme/model", "--out", path.join(root, "past")], direct);
  assert.equal(past.status, 0, past.stderr);
  assert.deepEqual(proxy.asked, []);
});

test("a proxy that refuses is named without its password, at once", async () => {
  for (const [status, problem] of [
    [407, "wants a name and password; write it as http://NAME:PASSWORD@HOST:PORT"],
    [
      403,
      "refuses to connect to hub.test (403); allow the host there, or add it to NO_PROXY if it can be reached without the proxy",
    ],
  ] as const) {
    using proxy = await startProxy("", status);
    const env = { HF_ENDPOINT: "http://hub.test", HTTP_PROXY: `http://me:secret@127.0.0.1:${proxy.port}` };
    assert.deepEqual(await fetchCommand(["acme/model", "--out", path.join(root, "refused")], env), {
      ...{ status: 1, stdout: "" },
      stderr: `the proxy http://127.0.0.1:${proxy.port} (HTTP_PROXY) ${problem}\n`,
    });
    assert.equal(proxy.asked.length, 1);
  }
});

test("a proxy that is no address is refused with its variable, without its password", async () => {
  for (const [value, shown] of [
    ["proxy.test:3128", "proxy.test:3128"],
    ["me:secret@proxy.test", "proxy.test"],
    ["ftp://me:se@cret@proxy", "ftp://proxy"],
  ])
    assert.deepEqual(await fetchCommand(["acme/model"], { HTTPS_PROXY: value }), {
      ...{ status: 2, stdout: "" },
      stderr: `HTTPS_PROXY is ${shown}, which is no address of a proxy; give one such as http://proxy.example.com:3128, or unset it\n`,
    });
});
