import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Duplex, Writable } from "node:stream";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { KubeConfig } from "@kubernetes/client-node";
import { accept, frame, STATUS, STDERR, STDOUT } from "./exec.fixture.ts";
import { execute, outputOf } from "./exec.ts";

const AT = { namespace: "team", pod: "quick-learner-abc", container: "learner" };
const MEGABYTE = 2 ** 20;

describe("a command in a container", () => {
  /** The API server's actions once the connection is open. */
  let serve: (socket: Duplex, request: IncomingMessage) => void;
  let server: Server;
  let config: KubeConfig;
  const sockets = new Set<Duplex>();
  before(async () => {
    server = createServer((_, response) => response.writeHead(404).end());
    server.on("upgrade", (request: IncomingMessage, socket: Duplex) => {
      sockets.add(socket);
      socket.on("error", () => {});
      if (serve !== forbid) accept(request, socket);
      serve(socket, request);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    config = new KubeConfig();
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    config.loadFromClusterAndUser({ name: "test", server: url, skipTLSVerify: true }, { name: "user" });
  });
  after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const forbid = (socket: Duplex) => void socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
  const cluster = (signal = new AbortController().signal) => ({ config, signal });
  const success = frame(STATUS, '{"status":"Success"}');

  test("It returns its output", async () => {
    let asked = "";
    serve = (socket, { url = "" }) => {
      asked = url;
      for (const part of ["weights, ", "more weights"]) socket.write(frame(STDOUT, part));
      socket.write(frame(STDERR, "a warning"));
      socket.write(success);
    };
    assert.equal((await outputOf(cluster(), AT, ["tar", "-cf", "-"])).toString(), "weights, more weights");
    const { pathname, searchParams } = new URL(asked, "http://api");
    assert.equal(pathname, "/api/v1/namespaces/team/pods/quick-learner-abc/exec");
    assert.deepEqual(searchParams.getAll("command"), ["tar", "-cf", "-"]);
    assert.deepEqual([searchParams.get("container"), searchParams.get("stdin")], ["learner", "false"]);
  });

  const FAULTS: [what: string, serve: typeof serve, message: RegExp][] = [
    [
      "that fails: its last words",
      (socket) => {
        socket.write(frame(STDERR, "tar: a warning\ntar: /data/run/best: No such file\n"));
        socket.write(frame(STATUS, '{"status":"Failure","message":"command terminated with exit code 2"}'));
      },
      /^tar in pod team\/quick-learner-abc: tar: \/data\/run\/best: No such file$/,
    ],
    [
      "that fails and says nothing",
      (socket) => void socket.write(frame(STATUS, '{"status":"Failure","message":"exit code 137"}')),
      /: exit code 137$/,
    ],
    [
      "whose connection breaks",
      (socket) => void socket.write(frame(STDOUT, "half"), () => socket.destroy()),
      /: the connection ended before the command did$/,
    ],
    ["that is forbidden", forbid, /403.*; you need the right to create pods\/exec$/],
  ];
  for (const [what, doing, message] of FAULTS)
    test(`It reports a command ${what}`, async () => {
      serve = doing;
      await assert.rejects(outputOf(cluster(), AT, ["tar"]), { code: "failed", message });
    });

  test("Ctrl-C ends it", async () => {
    const stopping = new AbortController();
    serve = (socket) => void socket.write(frame(STDOUT, "half"), () => stopping.abort(new Error("stopped")));
    await assert.rejects(outputOf(cluster(stopping.signal), AT, ["tar"]), /^Error: stopped$/);
  });

  test("A slow reader slows the command down", async () => {
    const megabytes = 96;
    let sent = 0;
    serve = async (socket) => {
      for (; sent < megabytes; sent++)
        if (!socket.write(frame(STDOUT, Buffer.alloc(MEGABYTE, 1))))
          await new Promise((resolve) => socket.once("drain", resolve));
      socket.write(success);
    };
    let bytes = 0;
    const released = Promise.withResolvers<void>();
    const output = new Writable({
      write(chunk: Buffer, _, done) {
        bytes += chunk.length;
        released.promise.then(() => done());
      },
    });
    const copying = execute(cluster(), AT, ["tar"], output);
    await sleep(1500);
    assert.ok(sent < 32, `${sent} MB are on their way to a reader that takes none`);
    released.resolve();
    await copying;
    await new Promise<void>((resolve) => output.end(resolve));
    assert.equal(bytes, megabytes * MEGABYTE);
  });
});
