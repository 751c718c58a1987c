/** An engine in this thread, which it blocks, without the memory of further threads: for a command that does nothing else. */
import type { Remote } from "./calls.ts";
import type { Engine, EngineOptions } from "./engine.ts";
import { EngineWorker } from "./engine-worker.ts";
import { Trainer } from "./trainer.ts";

/**
 * @param options of one worker: with an adapter, or on a GPU
 * @throws EngineError, ModelError for options and folders that cannot be used
 */
export function localEngine(options: EngineOptions): Engine {
  return new Trainer(options, undefined, (own) => promising(new EngineWorker(own)));
}

/** `target`, whose methods all return promises. */
function promising<T extends object>(target: T): Remote<T> {
  return new Proxy(target, {
    get:
      (methods, name) =>
      async (...parameters: unknown[]) =>
        (methods as Record<PropertyKey, (...parameters: unknown[]) => unknown>)[name]!(...parameters),
  }) as Remote<T>;
}
