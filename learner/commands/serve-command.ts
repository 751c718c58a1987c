/**
 * `longrun serve`: the policy behind an HTTP API like OpenAI's (learner/serve/README.md), until SIGTERM or Ctrl-C; running requests then
 * have some seconds to finish. Exit status: 0 after SIGTERM, 130 after Ctrl-C; the second signal ends it at once.
 */
import { isIP } from "node:net";
import { basename, resolve } from "node:path";
import {
  deviceName,
  FROZEN,
  type RunningEngine,
  readAdapter,
  readConfig,
  readEosIds,
  readTokenizer,
  startEngine,
} from "../engine/index.ts";
import { EncoderThread } from "../serve/encoder.ts";
import { LIMITS } from "../serve/limits.ts";
import type { ServedModel } from "../serve/model.ts";
import { ApiServer } from "../serve/server.ts";
import { chooseDevice, InputError, modelFolder, required, runCommand } from "./command.ts";
import { newestWeights, type Weights } from "./run-weights.ts";
import { serveGenerator } from "./serve-generator.ts";
import { SERVE, type ServeOptions } from "./serve-options.ts";
import { contextOf, onSignals, planOf } from "./serving.ts";

async function serve(values: ServeOptions): Promise<number> {
  const say = (line: string) => void process.stderr.write(`${line}\n`);
  if (values.tls !== undefined) return serveGenerator({ ...values, tls: values.tls }, say);
  const listen = listenOf(values);
  const { slots, threads, maxWaiting } = values;
  const weights = weightsOf(values, say);
  const config = readConfig(weights.model);
  const context = contextOf(values.context, config);
  const lora = weights.adapter === undefined ? undefined : readAdapter(weights.adapter, config).lora;
  const [tokenizer, eosIds] = [readTokenizer(weights.model), readEosIds(weights.model)];
  const device = await chooseDevice(values.device);
  const { widens } = planOf({ folder: weights.model, lora }, device, slots, context);
  const encoder = new EncoderThread(tokenizer.files);
  const model: ServedModel = {
    name: values.servedModelName ?? weights.name,
    vocabSize: config.vocabSize,
    maxPositions: context,
    tokenizer,
    encoder,
    eosIds,
    answerPrefix: values.answerPrefix ?? weights.answerPrefix,
    createdSeconds: Math.floor(Date.now() / 1000),
  };

  const end = Promise.withResolvers<number>();
  end.promise.catch(() => {}); // an engine that fails before it serves says so itself
  let engine: RunningEngine | undefined;
  onSignals((status, again) => {
    if (again || !engine) process.exit(status);
    say(`ending: running requests have ${LIMITS.drainSeconds} seconds; the same signal again ends at once`);
    end.resolve(status);
  });
  const server = await listening({ ...listen, slots, maxWaiting, model, onFault: say });
  try {
    const adapter = lora ? { ...lora, seed: 0, folder: weights.adapter } : FROZEN;
    const options = { model: weights.model, threads, device, slots, positions: context, adapter, widens };
    engine = await startEngine(options, end.reject);
    // the first token takes the longest, and shows that there is memory for it
    await engine.generate([new Int32Array(2)], { seeds: [0], temperature: 1, topP: 1, maxNewTokens: 1 });
    server.serve(engine);
    announce(model, listen, server.port, `${slots} slots of ${context} tokens on ${deviceName(device)}`);
    return await end.promise;
  } finally {
    await server.end();
    await encoder.close();
    if (engine && !engine.failure) await engine.close();
  }
}

function weightsOf(values: ServeOptions, say: (line: string) => void): Weights {
  const { run, model, adapter } = values;
  if (run === undefined) {
    const folder = modelFolder(required(model, "--model", "a model folder, or --run with the folder of a run"));
    return { name: basename(resolve(adapter ?? folder)), model: folder, adapter };
  }
  if (model === undefined && adapter === undefined) return newestWeights(run, say);
  throw new InputError("--run has a model of its own; leave --model and --adapter out");
}

function listenOf(values: ServeOptions) {
  const { host = "127.0.0.1" } = values;
  const key = values.apiKey || process.env.LONGRUN_API_KEY || undefined;
  if (key !== undefined && values.noKey) throw new InputError("there is a key and --no-key; leave one of them out");
  const loopback = host === "localhost" || (isIP(host) !== 0 && /^(127\.|::1$)/.test(host));
  if (!loopback && key === undefined && !values.noKey)
    throw new InputError(
      `--host is ${host}: others could connect, and there is no key; set LONGRUN_API_KEY, or say --no-key`,
    );
  const { port = 8000 } = values;
  if (port > 65_535) throw new InputError(`--port is ${port}; give a whole number of at most 65535`);
  return { host, port, key, loopback };
}

async function listening(options: Parameters<typeof ApiServer.listen>[0]): Promise<ApiServer> {
  try {
    return await ApiServer.listen(options);
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code !== "EADDRINUSE") throw new InputError(`--host ${options.host}: ${message}`, { cause });
    throw new InputError(`--port ${options.port} is in use; choose another, or 0 for any free one`, { cause });
  }
}

function announce(model: ServedModel, { host, key }: ReturnType<typeof listenOf>, port: number, where: string): void {
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${port}/v1`;
  const chats = model.tokenizer.hasChatTemplate;
  const body = chats ? { messages: [{ role: "user", content: "Hello" }], max_tokens: 64 } : { prompt: "Hello" };
  const authorization = key === undefined ? "" : ` -H "authorization: Bearer $LONGRUN_API_KEY"`;
  const headers = `-H 'content-type: application/json'${authorization}`;
  const path = `${url}/${chats ? "chat/completions" : "completions"}`;
  process.stdout.write(`Serving ${model.name} at ${url}: ${where}\n`);
  process.stdout.write(`Try: curl ${path} ${headers} -d '${JSON.stringify(body)}'\n`);
}

if (import.meta.main) await runCommand(SERVE, serve);
