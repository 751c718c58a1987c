/**
 * Methods of an object that lives in a worker thread, called from the thread that started it: one after the other, in the
 * order of the calls. What is passed is copied, but for numbers in shared memory (SharedArrayBuffer).
 */
import type { MessagePort, Worker } from "node:worker_threads";
import { EngineError } from "./errors.ts";

interface Call {
  id: number;
  method: string;
  parameters: unknown[];
}

type Answer =
  | { id: number; result: unknown }
  | { id: number; error: { name: string; code?: string; message: string; stack?: string } };

type Methods = Record<string, (...parameters: unknown[]) => unknown>;

/** Answers the calls that come by `port`; `make` is called by the first. After `close` the thread can end. */
export function serveCalls(port: MessagePort, make: () => object | Promise<object>): void {
  let queue: Promise<unknown> = Promise.resolve();
  let target: Methods | undefined;
  port.on("message", ({ id, method, parameters }: Call) => {
    queue = queue.then(async () => {
      try {
        target ??= (await make()) as Methods;
        const answer: Answer = { id, result: await target[method]!(...parameters) };
        port.postMessage(answer);
        if (method === "close") port.close();
      } catch (cause) {
        const { name, code, message, stack } = cause as Error & { code?: string };
        const answer: Answer = { id, error: { name, code, message, stack } };
        port.postMessage(answer);
      }
    });
  });
}

/** The calling side. The thread keeps its process alive only while something is asked of it. */
export class Caller {
  readonly worker: Worker;
  readonly #waiting = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
  #next = 0;
  #failure: EngineError | undefined;

  /** @param what it is, for errors: "the engine's worker" */
  constructor(worker: Worker, what: string) {
    this.worker = worker;
    const end = (message: string, cause?: unknown) => {
      this.#failure ??= new EngineError("worker", `${what} ${message}`, { cause });
      for (const { reject } of this.#waiting.values()) reject(this.#failure);
      this.#waiting.clear();
    };
    worker.on("message", (answer: Answer) => this.#settle(answer));
    worker.on("error", (cause) => end(`failed: ${cause instanceof Error ? cause.message : cause}`, cause));
    worker.on("exit", (code) => end(`has ended (${code})`));
    worker.unref();
  }

  /** Why nothing can be called any more. */
  get failure(): EngineError | undefined {
    return this.#failure;
  }

  /** @throws EngineError with the code of what went wrong there, or `worker` */
  call(method: string, ...parameters: unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#failure) return reject(this.#failure);
      const id = this.#next++;
      this.#waiting.set(id, { resolve, reject });
      this.worker.ref();
      const message: Call = { id, method, parameters };
      this.worker.postMessage(message);
    });
  }

  #settle(answer: Answer): void {
    const call = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if (this.#waiting.size === 0) this.worker.unref();
    if ("result" in answer) {
      call?.resolve(answer.result);
    } else {
      const { code, message, stack } = answer.error;
      call?.reject(Object.assign(new EngineError(code ?? "worker", message), { stack }));
    }
  }
}
