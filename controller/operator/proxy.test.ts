/** Tests the chart's value `proxy`: which of the controller's connections use a proxy. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request as httpRequest, type RequestListener, type Server } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import * as grpc from "@grpc/grpc-js";
import { createAuthority, createCertificate } from "../../proto/certificates.ts";
import { channelOptions, LearnerStatusService, messages, type StatusMessage } from "../../proto/service.ts";
import type { Connections } from "./proxy.fixture.ts";

const RECEIVER = "hooks.example.com";
const LEARNER = "quickstart-learner.default.svc";

const authority = await createAuthority({ validSeconds: 3600 });
const issue = (role: "learner" | "controller") =>
  createCertificate(authority, { role, name: role, validSeconds: 3600, hosts: [LEARNER, "localhost", RECEIVER] });
const [serverTls, clientTls] = await Promise.all([issue("learner"), issue("controller")]);
const folder = mkdtempSync(join(tmpdir(), "longrun-proxy-"));
const stops: (() => void)[] = [() => rmSync(folder, { recursive: true })];
after(() => {
  for (const stop of stops) stop();
});

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stops.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const https = (answer: RequestListener) =>
  createHttpsServer({ key: serverTls.key, cert: serverTls.certificate }, answer);
const json: RequestListener = (_, response) =>
  void response.writeHead(200, { "content-type": "application/json" }).end('{"minor":"34"}');

async function startLearner(): Promise<number> {
  const server = new grpc.Server(channelOptions());
  const status: StatusMessage = { phase: messages.Phase.EXECUTING, iteration: 7 };
  server.addService(LearnerStatusService, {
    watch: (call: grpc.ServerWritableStream<unknown, StatusMessage>) => void call.write(status),
  });
  const [ca, key, certificate] = [serverTls.authority, serverTls.key, serverTls.certificate].map((it) =>
    Buffer.from(it),
  );
  const credentials = grpc.ServerCredentials.createSsl(ca!, [{ private_key: key!, cert_chain: certificate! }], true);
  stops.push(() => server.forceShutdown());
  return new Promise((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", credentials, (error, port) => (error ? reject(error) : resolve(port))),
  );
}

test("Only the webhook uses the proxy, unless NO_PROXY names its receiver", async () => {
  const webhook: string[] = [];
  const receive: RequestListener = (request, response) => {
    webhook.push(`${request.headers.host} ${request.url}`);
    response.writeHead(204).end();
  };
  const [plain, secure, apiServer, learner] = await Promise.all([
    listen(createServer(receive)),
    listen(https(receive) as Server),
    listen(https(json) as Server),
    startLearner(),
  ]);
  // It resolves every name to this machine and records requests.
  const asked: string[] = [];
  const proxy = createServer();
  proxy.on("connect", (request, socket, head) => {
    asked.push(request.url!);
    const port = Number(request.url!.split(":")[1]);
    const upstream = connect({ host: "127.0.0.1", port }, () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      upstream.write(head);
      upstream.pipe(socket).pipe(upstream);
    });
    for (const end of [upstream, socket]) end.on("error", () => void upstream.destroy());
  });
  // Requests without TLS name the whole address.
  proxy.on("request", (request, response) => {
    const { host, port, pathname: path } = new URL(request.url!);
    asked.push(host);
    const { method, headers } = request;
    const onwards = httpRequest({ host: "127.0.0.1", port, path, method, headers }, (answer) => {
      response.writeHead(answer.statusCode!);
      answer.pipe(response);
    });
    request.pipe(onwards);
  });
  const proxyUrl = `http://127.0.0.1:${await listen(proxy)}`;

  const names = { http_proxy: proxyUrl, https_proxy: proxyUrl, no_proxy: "127.0.0.1,.svc" };
  const connections: Connections = {
    ...{
      apiServer: `https://localhost:${apiServer}`,
      learner: `localhost:${learner}`,
      tls: clientTls,
      serverName: LEARNER,
    },
    webhooks: [
      `https://${RECEIVER}:${secure}/tls`,
      `http://${RECEIVER}:${plain}/plain`,
      `http://localhost:${plain}/near`,
      `http://127.0.0.1:${plain}/direct`,
    ],
  };
  writeFileSync(join(folder, "ca.pem"), clientTls.authority);
  const env = {
    ...process.env,
    ...{ NODE_USE_ENV_PROXY: "1", NODE_EXTRA_CA_CERTS: join(folder, "ca.pem") },
    // In lower case too, because gRPC reads only that.
    ...names,
    ...Object.fromEntries(Object.entries(names).map(([name, value]) => [name.toUpperCase(), value])),
  };
  const fixture = join(import.meta.dirname, "proxy.fixture.ts");
  const { stdout } = await promisify(execFile)(process.execPath, [fixture, JSON.stringify(connections)], { env });

  const told = "the receiver answered 204";
  assert.deepEqual(JSON.parse(stdout), [{ minor: "34" }, 7, told, told, told, told]);
  assert.deepEqual(asked, [`${RECEIVER}:${secure}`, `${RECEIVER}:${plain}`, `localhost:${plain}`]);
  assert.deepEqual(
    webhook.map((it) => it.replace(/:\d+/, "")),
    [`${RECEIVER} /tls`, `${RECEIVER} /plain`, "localhost /near", "127.0.0.1 /direct"],
  );
});
