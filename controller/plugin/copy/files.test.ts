/** Tests copies out of a cluster against a fake API server that runs commands on this machine. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { after, before, describe, test } from "node:test";
import { KubeConfig } from "@kubernetes/client-node";
import { ApiClient } from "../../operator/kube/api-client.ts";
import { runOf } from "../../operator/run.fixture.ts";
import type { Cluster } from "../cluster.ts";
import { accept, frame, STATUS, STDERR, STDOUT } from "./exec.fixture.ts";
import { fetchReport, pull, showBest } from "./files.ts";
import { RUN_FOLDER } from "./run-folder.ts";

const OPTIONS = { timeoutSeconds: 1, say: () => {} };
const PROGRAM = 'import pandas\nprint("\u001b[31mred")\n';

describe("Files that the plugin copies from a cluster", () => {
  let root: string;
  let server: Server;
  let cluster: Cluster;
  /** Bytes of the command's output after which the connection breaks. */
  let cutAfter = Number.POSITIVE_INFINITY;
  const sockets = new Set<Duplex>();
  before(async () => {
    root = mkdtempSync(join(tmpdir(), "longrun-files-"));
    const policy = join(root, "data", "checkpoints", "1-000002", "policy");
    mkdirSync(policy, { recursive: true });
    mkdirSync(join(root, "data", "best"));
    writeFileSync(join(policy, "model.safetensors"), Buffer.alloc(3_000_001, 7));
    writeFileSync(join(policy, "..", "policy-optimizer.safetensors"), "moments");
    const facts = { score: 281.3, metric: "MAE", iteration: 2, durationSeconds: 0.4, family: "ridge\u001b[2J" };
    writeFileSync(join(root, "data", "best", "score.json"), JSON.stringify(facts));
    writeFileSync(join(root, "data", "best", "program.py"), PROGRAM);

    const learner = { name: "learner", state: { running: {} } };
    const pod = { metadata: { name: "quick-learner-abc", uid: "u" }, status: { containerStatuses: [learner] } };
    const run = runOf({}, { checkpoint: { iteration: 2, digest: "d", path: "checkpoints/1-000002" } });
    server = createServer(({ url = "" }, response) => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(url.includes("/trainingruns/") ? run : { metadata: {}, items: [pod] }));
    });
    server.on("upgrade", (request: IncomingMessage, socket: Duplex) => {
      sockets.add(socket);
      socket.on("error", () => {});
      accept(request, socket);
      const command = new URL(request.url!, "http://api").searchParams
        .getAll("command")
        .map((word) => word.replace(RUN_FOLDER, join(root, "data")));
      const child = spawn(command[0]!, command.slice(1), { stdio: ["ignore", "pipe", "pipe"] });
      let sent = 0;
      child.stdout.on("data", (data: Buffer) => {
        sent += data.length;
        if (sent > cutAfter) socket.destroy();
        else socket.write(frame(STDOUT, data));
      });
      child.stderr.on("data", (data) => socket.write(frame(STDERR, data)));
      child.on("close", (code) => {
        const status = code === 0 ? { status: "Success" } : { status: "Failure", message: `exit code ${code}` };
        socket.write(frame(STATUS, JSON.stringify(status)));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const config = new KubeConfig();
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    config.loadFromClusterAndUser({ name: "test", server: url, skipTLSVerify: true }, { name: "user" });
    cluster = { config, client: new ApiClient(config), namespace: "team", signal: new AbortController().signal };
  });
  after(() => {
    for (const socket of sockets) socket.destroy();
    cluster.client.close();
    server.closeAllConnections();
    server.close();
    rmSync(root, { recursive: true });
  });

  test("A model is only the policy's folder, whole", async () => {
    const out = join(root, "model");
    assert.equal(await pull(cluster, "quick", "model", { ...OPTIONS, out }), out);
    assert.deepEqual(readdirSync(out), ["model.safetensors"]);
    assert.ok(readFileSync(join(out, "model.safetensors")).equals(Buffer.alloc(3_000_001, 7)));
  });

  test("Small archives, whose end tar knows before the last bytes arrive, are copied twenty times", async () => {
    for (let i = 0; i < 20; i++) {
      const out = join(root, `best-${i}`);
      await pull(cluster, "quick", "best", { ...OPTIONS, out });
      assert.equal(readFileSync(join(out, "program.py"), "utf8"), PROGRAM);
    }
  });

  test("A connection that breaks leaves no folder that looks like a model", async () => {
    cutAfter = 1_000_000;
    const out = join(root, "broken");
    await assert.rejects(pull(cluster, "quick", "model", { ...OPTIONS, out }), /the connection ended before/);
    assert.deepEqual(
      readdirSync(root).filter((name) => name.startsWith("broken")),
      [],
    );
    cutAfter = Number.POSITIVE_INFINITY;
  });

  test("The plugin refuses the run folder while a learner writes to it, and a report that does not exist", async () => {
    const pulling = pull(cluster, "quick", "run", { ...OPTIONS, out: join(root, "run") });
    await assert.rejects(pulling, { message: /pause quick first, or pull model or best$/ });
    await assert.rejects(fetchReport(cluster, "quick", OPTIONS), { message: /^quick has no report yet/ });
  });

  for (const [isTTY, program] of [
    [false, PROGRAM],
    [true, PROGRAM.replace("\u001b", "␛")],
  ] as const)
    test(`The best program is printed ${isTTY ? "harmless to a terminal" : "unchanged into a pipe"}`, async () => {
      let out = "";
      const screen = {
        isTTY,
        write(text: string) {
          out += text;
        },
      };
      await showBest(cluster, "quick", { ...OPTIONS, json: false }, screen);
      assert.equal(out, `# MAE 281.3 · written by the policy of iteration 2 · ran 0.40 s · ridge␛[2J\n${program}`);
    });
});
