/** A generator's endpoints: HTTPS for the run's learner alone, and probes and metrics on a port of their own. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { mkdtemp, open, rm, statfs } from "node:fs/promises";
import type { Server as HttpServer, IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TLSSocket } from "node:tls";
import { Gauge } from "prom-client";
import { limitedServer } from "../../proto/http-server.ts";
import { readTls, TlsFolder } from "../../proto/tls-folder.ts";
import { size } from "../engine/index.ts";
import { registryOfProcess } from "../metrics/registry.ts";
import type { Backend } from "./backend.ts";
import { GeneratorError } from "./errors.ts";
import { textOf } from "./http.ts";
import {
  type FailedAnswer,
  type GeneratorState,
  HEADERS,
  LIMITS,
  PATHS,
  parseFiles,
  parseGenerate,
  parseJson,
  type WeightsFile,
  type WeightsKind,
  type WeightsName,
} from "./protocol.ts";

interface GeneratorServerOptions {
  backend: Backend;
  /** 0: any free one */
  port: number;
  /** Default: every address of the machine. */
  host?: string;
  /** port of the probes and metrics, 0: any free one */
  probePort: number;
  /** Folder with ca.crt, tls.crt and tls.key, which may change. */
  tlsDirectory: string;
  /** Folder for weights that the backend has not loaded yet. */
  folder: string;
  /** Time for running rows after the server was asked to end. */
  drainSeconds: number;
  /** called with one line for each fault */
  onFault: (line: string) => void;
}

/** A generator that drains answers for at least this time, because the learner asks every two seconds. */
const NOTICE_SECONDS = 5;
/** Time for a learner whose upload was refused to read the answer. */
const REFUSED_SECONDS = 10;
/** Interval of checks whether rows still run. */
const LOOK_MILLISECONDS = 100;

/** HTTP statuses of errors. */
const STATUS: Record<GeneratorError["code"], number> = {
  request: 400,
  none: 503,
  version: 409,
  busy: 503,
  failed: 500,
};

export class GeneratorServer {
  readonly #o: GeneratorServerOptions;
  readonly #https: Server;
  readonly #probes: HttpServer;
  readonly #registry = registryOfProcess();
  #weights: WeightsName | undefined;
  /** Weights are loaded one version at a time. */
  #loading: Promise<void> = Promise.resolve();
  #rows = 0;
  #draining = false;
  /** Ends running rows when the time to drain is over. */
  readonly #cut = new AbortController();

  private constructor(options: GeneratorServerOptions) {
    this.#o = options;
    const { authority, certificate, key } = readTls(options.tlsDirectory);
    const tls = { ca: authority, cert: certificate, key, minVersion: "TLSv1.3" } as const;
    // receiving weights and generating rows may take minutes
    const times = { requestTimeout: 0, requestCert: true, rejectUnauthorized: true };
    this.#https = createServer({ ...tls, ...times }, (request, response) => void this.#respond(request, response));
    this.#probes = limitedServer((request, response) => void this.#probe(request, response));
    this.#followCertificates();
    const state = () => this.state;
    new Gauge({
      name: "longrun_generator_rows",
      help: "Rows now: in a slot, or waiting for one",
      labelNames: ["state"],
      registers: [this.#registry],
      collect() {
        const { running, waiting } = state();
        this.set({ state: "running" }, running);
        this.set({ state: "waiting" }, waiting);
      },
    });
  }

  static async listen(options: GeneratorServerOptions): Promise<GeneratorServer> {
    mkdirSync(options.folder, { recursive: true });
    const server = new GeneratorServer(options);
    try {
      await once(server.#probes.listen(options.probePort, options.host), "listening");
      await once(server.#https.listen(options.port, options.host), "listening");
      return server;
    } catch (cause) {
      // a listening server would keep the process alive
      server.#probes.close();
      server.#https.close();
      throw cause;
    }
  }

  get port(): number {
    return (this.#https.address() as AddressInfo).port;
  }

  get probePort(): number {
    return (this.#probes.address() as AddressInfo).port;
  }

  get state(): GeneratorState {
    const { engine, device, slots } = this.#o.backend;
    const { policyVersion = null, digest = null } = this.#weights ?? {};
    const waiting = Math.max(0, this.#rows - slots);
    const rows = { slots, running: this.#rows - waiting, waiting };
    return { engine, device, policyVersion, digest, ...rows, draining: this.#draining };
  }

  /** Takes no more rows, and resolves when the running ones have ended, or were cut off after `drainSeconds`. */
  async end(): Promise<void> {
    this.#draining = true;
    const cut = setTimeout(
      () => this.#cut.abort(new GeneratorError("busy", "the generator has ended")),
      this.#o.drainSeconds * 1000,
    );
    const noticed = performance.now() + 1000 * Math.min(NOTICE_SECONDS, this.#o.drainSeconds);
    while (this.#rows > 0 || performance.now() < noticed) await sleep(LOOK_MILLISECONDS);
    clearTimeout(cut);
    const closed = [once(this.#https, "close"), once(this.#probes, "close")];
    this.#https.close();
    this.#probes.close();
    this.#https.closeIdleConnections();
    this.#probes.closeAllConnections();
    const last = setTimeout(() => this.#https.closeAllConnections(), 1000);
    await Promise.all(closed);
    clearTimeout(last);
    await this.#o.backend.close();
  }

  /** New connections use the certificate in the files, which may have changed. */
  #followCertificates(): void {
    const folder = new TlsFolder(this.#o.tlsDirectory);
    const renew = () => {
      const { authority, certificate, key } = readTls(this.#o.tlsDirectory);
      this.#https.setSecureContext({ ca: authority, cert: certificate, key });
    };
    folder.addCaCertificateListener(renew);
    folder.addIdentityCertificateListener(renew);
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      requireLearner(request.socket as TLSSocket);
      await this.#route(request, response);
    } catch (cause) {
      const error =
        cause instanceof GeneratorError ? cause : new GeneratorError("failed", (cause as Error).message, { cause });
      if (error.code === "failed") this.#o.onFault(`a request failed: ${error.message}`);
      if (response.destroyed) return;
      const answer: FailedAnswer = { error: { code: error.code, message: error.message } };
      if (response.headersSent) return void response.end(`${JSON.stringify(answer)}\n`);
      if (!request.complete) {
        // closing a connection during an upload may lose the answer, so the learner closes it after it has read the reason
        request.resume();
        setTimeout(() => request.complete || request.destroy(), REFUSED_SECONDS * 1000).unref();
      }
      sendJson(response, STATUS[error.code], answer);
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
    const { method } = request;
    if (pathname === PATHS.state && method === "GET") {
      const weights = this.#weights;
      if (!(await this.#o.backend.hasWeights()) && this.#weights === weights) this.#weights = undefined;
      return sendJson(response, 200, this.state);
    }
    if (pathname === PATHS.generate && method === "POST") return this.#generate(request, response);
    const version = pathname.startsWith(PATHS.weights) ? pathname.slice(PATHS.weights.length) : "";
    if (/^\d{1,15}$/.test(version) && method === "PUT") {
      await this.#takeWeights(request, Number(version), searchParams.get("kind"));
      return sendJson(response, 200, this.state);
    }
    throw new GeneratorError("request", `there is nothing at ${method} ${pathname}`);
  }

  async #generate(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#draining) throw new GeneratorError("busy", "the generator is draining");
    const { rows, ...asked } = parseGenerate(parseJson(await textOf(request, LIMITS.bodyBytes), "the request"));
    const weights = this.#weights;
    if (weights?.policyVersion !== asked.policyVersion || weights.digest !== asked.digest) {
      const here = weights ? nameOf(weights) : "none";
      throw new GeneratorError(
        "version",
        `the rows are for policy version ${nameOf(asked)}; the generator has ${here}`,
      );
    }
    const hungUp = new AbortController();
    response.once("close", () => hungUp.abort(new GeneratorError("busy", "the learner has hung up")));
    response.writeHead(200, { "content-type": "application/x-ndjson" }).flushHeaders();
    this.#rows += rows.length;
    let open = rows.length;
    const ended = () => {
      open--;
      this.#rows--;
    };
    try {
      await this.#o.backend.generate(rows, AbortSignal.any([hungUp.signal, this.#cut.signal]), (row) => {
        ended();
        response.write(`${JSON.stringify({ ...row, policyVersion: weights.policyVersion })}\n`);
      });
      response.end();
    } finally {
      while (open > 0) ended();
    }
  }

  async #takeWeights(request: IncomingMessage, policyVersion: number, kind: string | null): Promise<void> {
    if (this.#draining) throw new GeneratorError("busy", "the generator is draining");
    const digest = String(request.headers[HEADERS.digest] ?? "");
    const files = parseFiles(request.headers[HEADERS.files]);
    if (kind !== "adapter" && kind !== "full")
      throw new GeneratorError("request", `kind is ${kind}: it must be adapter or full`);
    await checkRoom(this.#o.folder, files);
    const folder = await mkdtemp(join(this.#o.folder, "weights-"));
    try {
      const found = await receive(request, folder, files);
      if (found !== digest)
        throw new GeneratorError(
          "request",
          `the weights' SHA-256 is ${found}, the header says ${digest}: they came damaged`,
        );
      await this.#load(folder, { policyVersion, digest, kind });
    } catch (cause) {
      await rm(folder, { recursive: true, force: true });
      throw cause;
    }
  }

  /** Loads weights. Once it starts, no further row begins with the old weights. */
  async #load(folder: string, weights: WeightsName & { kind: WeightsKind }): Promise<void> {
    const { policyVersion, digest } = weights;
    const load = async () => {
      this.#weights = undefined;
      await this.#o.backend.load(folder, weights);
      this.#weights = { policyVersion, digest };
    };
    const loaded = this.#loading.then(load);
    this.#loading = loaded.catch(() => {});
    await loaded;
  }

  async #probe({ url }: IncomingMessage, response: ServerResponse): Promise<void> {
    const { failure } = this.#o.backend;
    if (url === "/health") return sendJson(response, failure ? 503 : 200, { status: failure?.message ?? "ok" });
    if (url === "/ready")
      return sendJson(response, failure || this.#draining ? 503 : 200, { status: this.#draining ? "draining" : "ok" });
    if (url === "/metrics") {
      response.writeHead(200, { "content-type": this.#registry.contentType }).end(await this.#registry.metrics());
      return;
    }
    sendJson(response, 404, { status: "try /health, /ready or /metrics" });
  }
}

const nameOf = ({ policyVersion, digest }: WeightsName) => `${policyVersion} (${digest.slice(0, 12)})`;

/** @throws GeneratorError unless the client's certificate is a learner's */
function requireLearner(socket: TLSSocket): void {
  const unit: unknown = socket.getPeerCertificate().subject?.OU;
  if (unit !== "learner")
    throw new GeneratorError("request", `only the run's learner may call; this certificate's role is ${String(unit)}`);
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** @throws GeneratorError `failed` with both numbers unless the folder's disk has room for the files */
async function checkRoom(folder: string, files: readonly WeightsFile[]): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  if (bytes <= bavail * bsize) return;
  const problem = `the weights take ${size(bytes)}, and the disk of ${folder} has room for ${size(bavail * bsize)}`;
  throw new GeneratorError("failed", `${problem}: free space, or give --adapter-folder or TMPDIR on a larger disk`);
}

/** Writes the files of a body. @returns the SHA-256 of all. @throws GeneratorError `request` for a body of another length */
async function receive(request: IncomingMessage, folder: string, files: readonly WeightsFile[]): Promise<string> {
  const hash = createHash("sha256");
  const left = [...files];
  let out = await open(join(folder, left[0]!.name), "w");
  let missing = left.shift()!.bytes;
  const next = async () => {
    const file = left.shift();
    if (!file) throw new GeneratorError("request", "the body is longer than its files");
    await out.close();
    out = await open(join(folder, file.name), "w");
    missing = file.bytes;
  };
  try {
    for await (let chunk of request as AsyncIterable<Buffer>) {
      hash.update(chunk);
      while (chunk.length > 0) {
        while (missing === 0) await next();
        const part = chunk.subarray(0, missing);
        await out.writeFile(part); // continues at the end of the file
        missing -= part.length;
        chunk = chunk.subarray(part.length);
      }
    }
  } finally {
    await out.close();
  }
  if (missing > 0 || left.some(({ bytes }) => bytes > 0))
    throw new GeneratorError("request", "the body is shorter than its files");
  return hash.digest("hex");
}
