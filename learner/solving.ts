/** The writer of a search's solutions where it is an endpoint: it stands in place of the engine, whose weights nobody loads. */
import { join } from "node:path";
import { ENDPOINT_KEY, type EndpointSettings } from "../proto/solve.ts";
import type { RunContext } from "./context.ts";
import type { Device, RunningEngine } from "./engine/index.ts";
import { logNotice } from "./log.ts";
import type { Process } from "./process.ts";
import { decodeText, encodeMessages } from "./solve/endpoint/bytes.ts";
import { Endpoint } from "./solve/endpoint/endpoint.ts";
import { UsageLog } from "./solve/endpoint/usage.ts";
import type { Writing } from "./solve/solve.ts";

/** File, in the folder, with a line for each request. */
const REQUESTS = "requests.jsonl";

/** Returns what `loadEvaluated` returns of an engine, with the endpoint that writes in its place. */
export async function openEndpoint({ directory, store, log, signal }: Process, settings: EndpointSettings) {
  const stopping = new AbortController();
  const usage = new UsageLog(join(directory, REQUESTS), settings.prices);
  const writers = new Endpoint({
    settings,
    usage,
    key: process.env[ENDPOINT_KEY] || undefined,
    signal: AbortSignal.any([signal, stopping.signal]),
    onFault: (line) => logNotice(log, line),
  });
  const { lineage } = await store.beginLineage(async () => false);
  log.info({ lineage, url: settings.url, model: settings.model }, "the search begins");
  const endpoint: Writing = { usage: () => usage.usage, stop: () => stopping.abort(new Error("the budget is spent")) };
  const state: RunContext["progress"]["state"] = { iteration: 0, elapsedSeconds: 0 };
  const device: Device = { kind: "cpu" };
  return {
    engine: NO_ENGINE,
    device,
    checkpoint: undefined,
    state,
    load: undefined,
    writers,
    endpoint,
    encode: encodeMessages,
    decode: decodeText,
  };
}

const NO_ENGINE = new Proxy({} as RunningEngine, {
  get: (_, name) => {
    if (name === "failure") return undefined;
    throw new Error(`an endpoint writes the solutions: there is no engine (${String(name)})`);
  },
});
