/** `longrun serve --tls`: a generator (learner/generators/README.md), until SIGTERM or Ctrl-C; running rows have some seconds to end. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatAddress } from "../../proto/address.ts";
import { makeFolder } from "../../proto/folders.ts";
import { deviceName, onNotice, readConfig } from "../engine/index.ts";
import type { Backend } from "../generators/backend.ts";
import { EngineBackend } from "../generators/engine-backend.ts";
import { GeneratorServer } from "../generators/server.ts";
import { VllmBackend } from "../generators/vllm-backend.ts";
import { chooseDevice, InputError, modelFolder, required } from "./command.ts";
import { GENERATOR_DEFAULTS, type ServeOptions } from "./serve-options.ts";
import { contextOf, onSignals, planOf } from "./serving.ts";

/**
 * Serves until a signal comes. @returns the exit status
 *
 * @throws InputError, ChannelError `tlsFile`, GeneratorError for vLLM; EngineError if the engine fails, so that a supervisor starts it
 * again
 */
export async function serveGenerator(
  values: ServeOptions & { tls: string },
  say: (line: string) => void,
): Promise<number> {
  for (const option of ["adapter", "run"] as const)
    if (values[option] !== undefined)
      throw new InputError(
        `--${option} is given with --tls: a generator gets its weights from the learner; leave it out`,
      );
  const { port = GENERATOR_DEFAULTS.port, probePort, drainSeconds } = values;
  onNotice(say);
  const ended = Promise.withResolvers<number>();
  let isReady = false;
  onSignals((status, again) => {
    if (again || !isReady) process.exit(status);
    say(`draining: running rows have ${drainSeconds} seconds; the same signal again ends at once`);
    ended.resolve(status);
  });
  const folder =
    values.vllm === undefined
      ? mkdtempSync(join(tmpdir(), "longrun-generator-"))
      : folderOf(values.vllm, values.adapterFolder);
  try {
    const { backend, what } =
      values.vllm === undefined ? await ownEngine(values, ended.reject) : await vllm(values, values.vllm, folder, say);
    const { host } = values;
    const how = {
      backend,
      ...(host !== undefined && { host }),
      port,
      probePort,
      drainSeconds,
      folder,
      tlsDirectory: values.tls,
      onFault: say,
    };
    const server = await GeneratorServer.listen(how).catch((cause: NodeJS.ErrnoException) => {
      if (cause.syscall !== "listen") throw cause;
      throw new InputError(`--port or --probe-port: ${cause.message}; choose another, or 0 for any free one`, {
        cause,
      });
    });
    isReady = true;
    process.stdout.write(
      `Generator at https://${formatAddress({ host: host ?? "*", port: server.port })}, probes at port ${server.probePort}: ${what}\n`,
    );
    return await ended.promise.finally(() => server.end());
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function ownEngine(
  values: ServeOptions,
  onFailure: (failure: Error) => void,
): Promise<{ backend: Backend; what: string }> {
  const model = modelFolder(required(values.model, "--model", "the model folder that the run trains, or --vllm URL"));
  const { slots, threads } = values;
  const config = readConfig(model);
  const positions = contextOf(values.context, config);
  const device = await chooseDevice(values.device);
  const backend = new EngineBackend({
    model,
    config,
    threads,
    device,
    slots,
    positions,
    onFailure,
    plan: (weights) => planOf({ folder: model, ...weights }, device, slots, positions),
  });
  planOf({ folder: model }, device, slots, positions);
  return { backend, what: `${slots} slots of ${positions} tokens on ${deviceName(device)}` };
}

/** Returns an empty folder for this vLLM's adapters and arriving weights. Removes files that a killed sidecar of this vLLM has left. */
function folderOf(url: string, adapterFolder: string | undefined): string {
  if (URL.parse(url)?.protocol !== "http:")
    throw new InputError(`--vllm is ${url}; give a URL such as http://127.0.0.1:8000`);
  const parent = required(adapterFolder, "--adapter-folder", "a folder that vLLM reads, too");
  const folder = join(parent, `longrun-${new URL(url).host.replace(/[^\w.-]/g, "-")}`);
  rmSync(folder, { recursive: true, force: true });
  makeFolder(folder, "--adapter-folder");
  return folder;
}

async function vllm(
  values: ServeOptions,
  url: string,
  adapterFolder: string,
  onFault: (line: string) => void,
): Promise<{ backend: Backend; what: string }> {
  const modelName = required(values.modelName, "--model-name", "what vLLM's --served-model-name says");
  const { slots } = values;
  const device = values.device === "cpu" ? "cpu" : "cuda";
  const backend = await VllmBackend.connect({ url, adapterFolder, modelName, slots, device, onFault });
  return { backend, what: `${slots} slots of vLLM at ${url}` };
}
