/**
 * Sessions of which nothing stays on a device. On a CPU by ONNX Runtime's C API, which writes an output where the caller wants
 * it; its Node.js binding does so too, and returns a copy of each.
 */
import { GraphError } from "../graph/errors.ts";
import { type CreateSession, Session, usedDevice } from "../graph/session.ts";
import { ortApi } from "./api.ts";
import { DeviceRuntime } from "./runtime.ts";

/** By the Node.js binding on a GPU, and where koffi is not installed (then denormals.ts does nothing either). */
export const createSession = sessionsBy(ortApi);

export function sessionsBy(load: typeof ortApi): CreateSession {
  /** of this thread, as long as it lives; null where there is none */
  let runtime: DeviceRuntime | null | undefined;
  return async (graph, options) => {
    if ((options.device ?? usedDevice()).kind !== "cpu") return Session.create(graph, options);
    if (runtime === undefined) runtime = runtimeBy(load);
    return runtime ? runtime.createSession(graph, options) : Session.create(graph, options);
  };
}

function runtimeBy(load: typeof ortApi): DeviceRuntime | null {
  try {
    return new DeviceRuntime({ kind: "cpu" }, load);
  } catch (cause) {
    if (cause instanceof GraphError && cause.code === "device") return null;
    throw cause;
  }
}
