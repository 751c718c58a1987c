/** Every program listens in a network of IPv6 alone and of IPv4 alone, as a pod's may be. Network namespaces stand for pods. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { missingTools } from "../tools.ts";

const ROOT = join(import.meta.dirname, "../..");
const from = (path: string) => JSON.stringify(pathToFileURL(join(ROOT, path)).href);

/** Listens as the programs of pods do, at `:0`, and asks each over the loopback address that the network has. */
const SCRIPT = `
  import { mkdtempSync } from "node:fs";
  import { tmpdir } from "node:os";
  import { connect as connectSocket } from "node:net";
  import { join } from "node:path";
  import { once } from "node:events";
  import grpc from "@grpc/grpc-js";
  import { Registry } from "prom-client";
  import { serveMetrics } from ${from("actor/metrics.ts")};
  import { serveHealth } from ${from("controller/operator/health.ts")};
  import { bind } from ${from("proto/channel.ts")};
  const [host] = process.argv.slice(1);
  const registry = new Registry();
  const health = await serveHealth({ address: { port: 0 }, registry, sick: () => [], unready: () => [] });
  const metrics = await serveMetrics(":0", registry);
  const server = new grpc.Server();
  const ports = { health: health.port, metrics: metrics.port, grpc: await bind(server, { port: 0 }, grpc.ServerCredentials.createInsecure()) };
  for (const [name, port] of Object.entries(ports)) {
    const socket = connectSocket(port, host);
    await once(socket, "connect");
    console.log(name);
  }
  process.exit(0);
`;

const mayUnshare = spawnSync("unshare", ["--net", "true"]).status === 0;
const skip = missingTools(["unshare", "ip"]) ?? (mayUnshare ? false : "needs the right to make a network namespace");

const NETWORKS = [
  ["IPv6 alone", "ip link set lo up; ip -4 addr flush dev lo", "::1"],
  ["IPv4 alone", "ip link set lo up; ip -6 addr flush dev lo", "127.0.0.1"],
] as const;

for (const [name, prepare, host] of NETWORKS)
  test(`controller, actor and learner listen with ${name}`, { skip }, () => {
    const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` };
    const command = `${prepare}; exec "$0" --input-type=module -e "$1" ${host}`;
    const said = execFileSync("unshare", ["--net", "sh", "-ec", command, process.execPath, SCRIPT], { cwd: ROOT, env });
    assert.deepEqual(said.toString().trim().split("\n"), ["health", "metrics", "grpc"]);
  });
