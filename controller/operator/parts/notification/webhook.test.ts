import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { finishedEvent, pauseSeconds, post } from "./webhook.ts";

const EVENT = finishedEvent("/namespaces/team/trainingruns/quick", "uid-Succeeded", {
  ...{ name: "quick", namespace: "team", task: "diamonds", phase: "Succeeded", message: "all 12 iterations are done" },
  ...{ iteration: 12, iterations: 12, completionTime: "2026-01-01T00:00:00Z", score: { best: 281.3 } },
});
const SECRET = "T0P-SECRET";

describe("a webhook", () => {
  let server: Server;
  let answer: (request: IncomingMessage, response: ServerResponse) => void;
  let received: { request: IncomingMessage; body: string }[];
  let port: number;
  before(async () => {
    server = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request.setEncoding("utf8")) body += chunk;
      received.push({ request, body });
      answer(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  const to = (handler: typeof answer, url = `http://127.0.0.1:${port}/hooks/${SECRET}`, timeoutSeconds = 5) => {
    received = [];
    answer = handler;
    return post(url, EVENT, { timeoutSeconds });
  };
  const says =
    (status: number, headers = {}) =>
    (_: IncomingMessage, response: ServerResponse) => {
      response.writeHead(status, headers).end("what it says");
    };

  test("It receives a CloudEvent", async () => {
    assert.deepEqual(await to(says(202)), { delivered: true, message: "the receiver answered 202" });
    const [{ request, body }] = received as [(typeof received)[number]];
    assert.deepEqual([request.method, request.url], ["POST", `/hooks/${SECRET}`]);
    assert.equal(request.headers["content-type"], "application/cloudevents+json; charset=utf-8");
    assert.equal(request.headers["idempotency-key"], "uid-Succeeded");
    assert.deepEqual(JSON.parse(body), {
      ...{ specversion: "1.0", id: "uid-Succeeded", source: "/namespaces/team/trainingruns/quick" },
      ...{ type: "dev.longrun.trainingrun.succeeded", time: "2026-01-01T00:00:00Z" },
      datacontenttype: "application/json",
      data: {
        ...{ name: "quick", namespace: "team", task: "diamonds", phase: "Succeeded" },
        ...{ message: "all 12 iterations are done", iteration: 12, iterations: 12 },
        ...{ completionTime: "2026-01-01T00:00:00Z", score: { best: 281.3 } },
      },
    });
  });

  const ANSWERS: [status: number, again: boolean][] = [
    ...[500, 502, 503, 408, 425, 429].map((status): [number, boolean] => [status, true]),
    ...[301, 302, 400, 401, 404, 410].map((status): [number, boolean] => [status, false]),
  ];
  for (const [status, again] of ANSWERS)
    test(`An answer ${status} is ${again ? "" : "not "}followed by another call`, async () => {
      const headers = status < 400 ? { location: `http://127.0.0.1:${port}/elsewhere` } : {};
      const message = `the receiver answered ${status}`;
      assert.deepEqual(await to(says(status, headers)), { delivered: false, again, message });
      assert.equal(received.length, 1, "a redirect is not followed");
    });

  const hangs = () => {};
  const FAULTS: [
    what: string,
    handler: typeof answer,
    url: (port: number) => string,
    again: boolean,
    message: RegExp,
  ][] = [
    ["hangs", hangs, (p) => `http://127.0.0.1:${p}/${SECRET}`, true, /^no answer within 0\.2 s$/],
    [
      "begins to answer and hangs",
      (request) => void request.socket.write("HTTP/1.1 20"),
      (p) => `http://127.0.0.1:${p}/${SECRET}`,
      true,
      /^no answer within 0\.2 s$/,
    ],
    [
      "hangs up",
      (request) => void request.socket.destroy(),
      (p) => `http://127.0.0.1:${p}/${SECRET}`,
      true,
      /^the receiver cannot be reached: (UND_ERR_SOCKET|ECONNRESET)$/,
    ],
    ["is not there", hangs, () => `http://127.0.0.1:1/${SECRET}`, true, /^the receiver cannot be reached: [\w ]+$/],
    [
      "has no such host",
      hangs,
      () => `http://no-such-host.invalid/${SECRET}`,
      true,
      /cannot be reached: E[A-Z_]+$|no answer/,
    ],
    ["has no address", hangs, () => `${SECRET} is no url`, false, /^the webhook's url is no http or https address$/],
    ["is a file", hangs, () => `file:///${SECRET}`, false, /^the webhook's url is no http or https address$/],
    ["has an impossible port", hangs, () => `http://a:99999/${SECRET}`, false, /^the webhook's url is no http/],
    ["has a broken password", hangs, () => `http://a:%${SECRET}@127.0.0.1/`, false, /^the webhook's url is no http/],
  ];
  for (const [what, handler, url, again, message] of FAULTS)
    test(`The error of a webhook that ${what} hides its address`, async () => {
      const delivery = await to(handler, url(port), 0.2);
      assert.deepEqual([delivery.delivered, "again" in delivery && delivery.again], [false, again]);
      assert.match(delivery.message, message);
      assert.doesNotMatch(delivery.message, /T0P|127\.0|invalid/);
    });

  test("The user and password of its address become basic authentication", async () => {
    const delivery = await to(says(200), `http://us%40er:pass%3A1@127.0.0.1:${port}/hook\n`);
    assert.deepEqual(delivery, { delivered: true, message: "the receiver answered 200" });
    const { authorization } = received[0]!.request.headers;
    assert.equal(Buffer.from(authorization!.split(" ")[1]!, "base64").toString(), "us@er:pass:1");
  });

  test("An answer without end costs nothing", async () => {
    const endless = (_: IncomingMessage, response: ServerResponse) => {
      const writing = setInterval(() => response.write("x".repeat(1000)), 1);
      response.on("close", () => clearInterval(writing));
    };
    assert.equal((await to(endless)).delivered, true);
  });

  test("The call ends when the user stops it", async () => {
    received = [];
    answer = hangs;
    const stopping = new AbortController();
    const posting = post(`http://127.0.0.1:${port}/`, EVENT, { timeoutSeconds: 30, signal: stopping.signal });
    await sleep(50);
    stopping.abort();
    assert.deepEqual(await posting, { delivered: false, again: false, message: "interrupted" });
  });

  test("The pauses double", () => {
    assert.deepEqual(
      [1, 2, 3, 4].map((attempts) => pauseSeconds({ backoffSeconds: 5 }, attempts)),
      [5, 10, 20, 40],
    );
  });
});
