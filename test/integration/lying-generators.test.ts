/** The learner with generators that lie, fail or refuse. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readlinkSync, truncateSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fitInference, startEngine } from "../../learner/engine/index.ts";
import { GeneratorClient } from "../../learner/generators/client.ts";
import { EngineBackend } from "../../learner/generators/engine-backend.ts";
import { GeneratorError } from "../../learner/generators/errors.ts";
import { send, textOf } from "../../learner/generators/http.ts";
import { HEADERS, PATHS } from "../../learner/generators/protocol.ts";
import { GeneratorServer } from "../../learner/generators/server.ts";
import { weightsIn } from "../../learner/generators/weights.ts";
import { readTls } from "../../proto/tls-folder.ts";
import { missingTools } from "../tools.ts";
import { until } from "../until.ts";
import {
  alone,
  backendThat,
  config,
  folder,
  LORA,
  learner,
  lying,
  ofQuickstart,
  POLICY,
  simulated,
  tls,
  train,
  Writing,
  writes,
  written,
} from "./generators.fixture.ts";

const get = { method: "GET", headers: {}, signal: new AbortController().signal };

/** Whether a descriptor of this process is of a file below a folder. */
function isIn(fd: string, folder: string): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`).startsWith(folder);
  } catch {
    return false; // closed meanwhile
  }
}

describe("a generator that cannot be trusted", () => {
  const own = { model: POLICY, config, threads: 1, device: { kind: "cpu" }, slots: 4, positions: 512 } as const;
  const real = () => new EngineBackend({ ...own, plan: () => ({ widens: false }) });

  test("The log-probs reveal a generator that reports new weights and kept the old ones", async () => {
    const backend = real();
    const load = backend.load.bind(backend);
    let loads = 0;
    backend.load = async (...weights) => (loads++ === 0 ? load(...weights) : undefined);
    const liar = await lying(backend, "kept");
    const honest = await lying(real(), "honest");
    const { engine, generators, warnings, publish } = await learner([liar.url, honest.url], "adapter");
    const writing = new Writing(engine, generators);
    await publish(0);
    const first = written(await writing.samples(0));
    assert.equal(generators.takeCounts().faults.logProbs, 0);
    await train(engine);
    await publish(1);
    const second = written(await writing.samples(1));
    assert.deepEqual([first, second], await alone("adapter"), "rows of the liar were written again");
    assert.equal(generators.takeCounts().faults.logProbs, 1);
    assert.match(warnings.join("\n"), /log-probs differ from the learner's by 0\.\d+ nats a token, more than 0\.001/);
    assert.equal(generators.status.generators[0]!.notUsedBecause, "its log-probs are not the learner's");
  });

  test("A generator that got weights from another client counts as old, and gets the learner's weights again", async (t) => {
    const server = await lying(real(), "changed");
    const { engine, generators, warnings, publish } = await learner([server.url], "adapter");
    const writing = new Writing(engine, generators);
    await publish(0);
    await writing.samples(0);
    const other = await startEngine({ model: POLICY, threads: 1, adapter: { ...LORA, seed: 2 } });
    const directory = mkdtempSync(join(folder, "other-"));
    await other.savePolicy(directory);
    await other.close();
    const intruder = new GeneratorClient({ url: server.url, servername: undefined }, () => readTls(tls("learner")));
    t.after(() => intruder.close());
    await intruder.bring(await weightsIn(directory, 7), new AbortController().signal);
    const samples = await writing.samples(0, 4);
    assert.equal(samples.length, 16);
    assert.match(warnings.join("\n"), /has policy version 7|the generator has 7/);
    assert.ok(generators.takeCounts().faults.oldVersion > 0);
  });

  test("A generator refuses full weights that do not fit its memory, with the numbers", async () => {
    const budget = { host: { bytes: 1e6, source: "given" }, gpu: undefined };
    const shapes = [{ rows: 4, promptTokens: 511, responseTokens: 1 }];
    const plan: ConstructorParameters<typeof EngineBackend>[0]["plan"] = (weights) => {
      const asked = { models: [{ folder: POLICY, ...weights }], shapes, device: own.device };
      return fitInference(asked, budget, { slots: "--slots", lengths: ["--context"] });
    };
    const { url } = await lying(new EngineBackend({ ...own, plan }), "small");
    const { generators } = await learner([url], "full");
    await generators.publish(0);
    const why = () => generators.status.generators[0]?.notUsedBecause ?? "";
    await until(() => /takes no weights/.test(why()), why);
    assert.match(why(), /generation needs about .* but 1\.00 MB is given; .*weights .* MB \(no setting\)/);
  });

  test("A generator refuses weights that do not fit its disk, with both numbers", async () => {
    const { url } = await lying(real(), "full-disk");
    const large = { name: "model.safetensors", bytes: 2e8 };
    const directory = mkdtempSync(join(folder, "large-"));
    writeFileSync(join(directory, large.name), "");
    truncateSync(join(directory, large.name), large.bytes);
    const client = new GeneratorClient({ url, servername: undefined }, () => readTls(tls("learner")));
    const weights = { kind: "full", policyVersion: 1, folder: directory, digest: "0".repeat(64) } as const;
    const files = [large, { name: "b.safetensors", bytes: 1e15 }];
    // a connection that was closed too early lost the answer now and then
    for (let i = 0; i < 20; i++)
      await assert.rejects(client.bring({ ...weights, files }, AbortSignal.timeout(9000)), {
        code: "failed",
        message:
          /^the weights take 1\.00e\+6 GB, and the disk of \S+full-disk has room for \S+ GB: free space, or give/,
      });
  });

  test("A generator whose disk fills while weights arrive answers with an error, and continues", {
    skip: missingTools(["prlimit"]),
  }, async () => {
    const { url, child, probes } = await ofQuickstart();
    execFileSync("prlimit", ["--pid", String(child.pid), "--fsize=1"]); // stands for the full disk
    const { authority: ca, certificate: cert, key } = readTls(tls("learner"));
    const bytes = 1e6;
    const headers = { [HEADERS.digest]: "0".repeat(64), [HEADERS.files]: JSON.stringify([{ name: "a", bytes }]) };
    const parts = [8, 8, bytes - 16].map((size) => Buffer.alloc(size));
    const body = Readable.from(parts).map((part) => sleep(500, part), { concurrency: 1 });
    const how = {
      method: "PUT",
      headers: { ...headers, "content-length": bytes },
      body,
      signal: AbortSignal.timeout(9000),
    };
    const answer = await send(new URL(`${PATHS.weights}1?kind=full`, url), { ca, cert, key }, how);
    assert.match(await textOf(answer), /EFBIG: file too large/);
    assert.equal((await fetch(`${probes}/health`)).status, 200);
  });

  test("An upload that ends early leaves no file and no open handle, and the next one succeeds", async () => {
    const { url } = await lying(backendThat(writes), "ended-early");
    const received = join(folder, "ended-early");
    const { authority: ca, certificate: cert, key } = readTls(tls("learner"));
    const digest = createHash("sha256").update("weights").digest("hex");
    const upload = (parts: string[], signal: AbortSignal) => {
      const files = JSON.stringify([{ name: "model.safetensors", bytes: 7 }]);
      const headers = { [HEADERS.digest]: digest, [HEADERS.files]: files, "content-length": 7 };
      const body = Readable.from(
        (async function* () {
          yield* parts.map((part) => Buffer.from(part));
          if (parts.length === 1) await sleep(20_000, undefined, { signal, ref: false });
        })(),
      );
      return send(
        new URL(`${PATHS.weights}1?kind=full`, url),
        { ca, cert, key },
        { method: "PUT", headers, body, signal },
      );
    };
    const open = () => readdirSync("/proc/self/fd").filter((fd) => isIn(fd, received));
    const aborting = new AbortController();
    const ended = upload(["wei"], aborting.signal);
    await until(() => open().length > 0, "the upload begins");
    aborting.abort(new Error("newer weights are there"));
    await assert.rejects(ended, { name: "AbortError" });
    await until(() => readdirSync(received).length === 0, "the folder is empty");
    assert.deepEqual(open(), []);
    const answer = await send(new URL(PATHS.state, url), { ca, cert, key }, get);
    assert.match(await textOf(answer), /"policyVersion":null/);
    assert.match(await textOf(await upload(["wei", "ghts"], get.signal)), /"policyVersion":1/);
    assert.deepEqual(readdirSync(received), []);
  });

  test("Without a generator the rows wait, and the error gives the time and the reason", async () => {
    const { url, child } = await ofQuickstart();
    const { generators, publish } = await learner([url], "adapter", { noGeneratorSeconds: 3 });
    await publish(0);
    child.kill("SIGKILL");
    await sleep(100);
    const how = { seeds: [1], temperature: 1, topP: 1, maxNewTokens: 4 };
    const found = generators.generate([Int32Array.of(1)], how);
    await assert.rejects(found, {
      code: "none",
      message: /^no generator can be used for \d+ s, and 1 rows wait: 127\.0\.0\.1:\d+: it does not answer: /,
    });
  });

  test("A row that no generator can write ends the run with the reason", async () => {
    const { url } = await lying(real(), "long");
    const { generators, publish } = await learner([url], "adapter");
    await publish(0);
    const how = { seeds: [1], temperature: 1, topP: 1, maxNewTokens: 1_000_000 };
    await assert.rejects(generators.generate([Int32Array.of(1)], how), {
      code: "request",
      message: /refuses a row: cannot generate: prompt 0 and maxNewTokens are 1000001 tokens/,
    });
  });
});

test("A generator whose port is in use frees its other port, so that its process can end", async () => {
  const { server } = await lying(backendThat(writes), "first");
  const free = async () => {
    const probe = createServer().listen(0, "127.0.0.1");
    await once(probe, "listening");
    const { port } = probe.address() as AddressInfo;
    await new Promise((resolve) => probe.close(resolve));
    return port;
  };
  for (const taken of ["port", "probePort"] as const) {
    const ports = { port: await free(), probePort: await free(), [taken]: server[taken] };
    const listening = GeneratorServer.listen({
      ...{ backend: backendThat(writes), host: "127.0.0.1", tlsDirectory: tls("generator"), drainSeconds: 5 },
      ...{ folder: join(folder, "second"), onFault: () => {}, ...ports },
    });
    await assert.rejects(listening, { code: "EADDRINUSE" });
    const other = createServer().listen(taken === "port" ? ports.probePort : ports.port, "127.0.0.1");
    await once(other, "listening");
    other.close();
  }
});

describe("a generator that refuses rows", () => {
  /** Refuses a request in which a prompt has several tokens. */
  const small = (asked: number[]) =>
    backendThat(
      async (rows, signal, onRow) => {
        if (rows.some(({ prompt }) => prompt.length > 1)) throw new GeneratorError("request", "too long");
        asked.push(rows.length);
        await writes(rows, signal, onRow);
      },
      { slots: 64 },
    );

  test("Another generator writes the rows of a refused request", async () => {
    const [asked, rest]: [number[], number[]] = [[], []];
    const large = backendThat(async (rows, signal, onRow) => {
      rest.push(...rows.map(({ prompt }) => prompt.length));
      await writes(rows, signal, onRow);
    });
    const servers = [await lying(small(asked), "small-rows"), await lying(large, "large-rows")];
    const { generators, generate, areReady } = await simulated(servers.map(({ url }) => url));
    await areReady();
    const responses = await generate([[1], [1, 2], [1], [1]]);
    assert.equal(responses.length, 4);
    assert.deepEqual([asked, rest], [[], [1, 2, 1, 1]]);
    assert.equal(generators.takeCounts().movedRows, 4);
  });

  test("The run ends when all generators have refused a row", async () => {
    const servers = [await lying(small([]), "small-1"), await lying(small([]), "small-2")];
    const { generate, areReady } = await simulated(servers.map(({ url }) => url));
    await areReady();
    await assert.rejects(generate([[1], [1, 2]]), { code: "request", message: /refuses a row: too long/ });
  });

  for (const [what, answer] of Object.entries({
    "a log-prob that is no number": { logProbs: [Number.NaN] },
    "a row that nobody asked for": { id: "other" },
    "a row that is longer than was asked": { tokens: new Array(5).fill(7), logProbs: new Array(5).fill(0) },
  }))
    test(`${what} is the generator's own fault, and another generator writes the row`, async () => {
      const bad = backendThat(
        async ([row], _, onRow) => onRow({ id: row!.id, tokens: [7], logProbs: [0], finish: "stop", ...answer }),
        { slots: 64 },
      );
      const servers = [await lying(bad, `bad-${what}`), await lying(backendThat(writes), `good-${what}`)];
      const { generators, generate, areReady } = await simulated(servers.map(({ url }) => url));
      await areReady();
      assert.equal((await generate([[1]])).length, 1);
      assert.equal(generators.takeCounts().faults.lost, 1);
    });
});
