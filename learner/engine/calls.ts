/**
 * Methods of an object that lives in a worker thread, called from the thread that started it: one after the other, in the
 * order of the calls. What is passed is copied, but for numbers in shared memory (SharedArrayBuffer), and for a function as the last
 * parameter: calls of it come back here while the method runs.
 */
import { type MessagePort, Worker } from "node:worker_threads";
import { EngineError } from "./errors.ts";

interface Call {
  id: number;
  method: string;
  parameters: unknown[];
  /** a function is a further parameter, and stays here */
  listens: boolean;
}

type Answer =
  | { id: number; told: unknown[] }
  | { id: number; result: unknown }
  | { id: number; error: { name: string; code?: string; message: string; stack?: string } };

type Methods = Record<string, (...parameters: unknown[]) => unknown>;

/** The methods of T as another thread calls them: each returns a promise. */
export type Remote<T> = {
  [M in keyof T]: T[M] extends (...parameters: infer P) => infer R ? (...parameters: P) => Promise<Awaited<R>> : never;
};

/** Answers the calls that come by `port`; `make` is called by the first. After `close` the thread can end. */
export function serveCalls(port: MessagePort, make: () => object | Promise<object>): void {
  let queue: Promise<unknown> = Promise.resolve();
  let target: Methods | undefined;
  port.on("message", ({ id, method, parameters, listens }: Call) => {
    const tell = (...told: unknown[]) => port.postMessage({ id, told } satisfies Answer);
    if (listens) parameters.push(tell);
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

interface Waiting {
  resolve: (result: unknown) => void;
  reject: (error: Error) => void;
  listener: ((...told: unknown[]) => void) | undefined;
}

/** A worker thread and the methods of the object T in it. The thread keeps its process alive only while a call is open. */
export class WorkerThread<T extends object> {
  /** @throws EngineError with the code of what went wrong there, or `worker` */
  readonly calls: Remote<T>;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #next = 0;
  #closed = false;
  #failure: EngineError | undefined;

  /**
   * @param file the thread's module, which calls `serveCalls`
   * @param workerData what the thread is given at its start
   * @param what the thread's name in errors, such as "the engine's thread"
   * @param onFailure called once, where the thread fails or ends though nobody has called `close`
   */
  constructor(file: URL, workerData: unknown, what: string, onFailure: (failure: EngineError) => void = () => {}) {
    this.#worker = new Worker(file, { workerData });
    const end = (message: string, cause?: unknown) => {
      if (this.#failure) return;
      this.#failure = new EngineError("worker", `${what} ${message}`, { cause });
      for (const { reject } of this.#waiting.values()) reject(this.#failure);
      this.#waiting.clear();
      if (!this.#closed) onFailure(this.#failure);
    };
    this.#worker.on("message", (answer: Answer) => this.#settle(answer));
    this.#worker.on("error", (cause) => end(`failed: ${cause instanceof Error ? cause.message : cause}`, cause));
    this.#worker.on("exit", (code) => end(`has ended (${code})`));
    this.#worker.unref();
    this.calls = new Proxy({} as Remote<T>, {
      get:
        (_, method) =>
        (...parameters: unknown[]) =>
          this.#call(String(method), parameters),
    });
  }

  /** The error of every further call, once the thread has failed or ended. */
  get failure(): EngineError | undefined {
    return this.#failure;
  }

  async terminate(): Promise<void> {
    this.#closed = true;
    await this.#worker.terminate();
  }

  #call(method: string, parameters: unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#failure) return reject(this.#failure);
      const id = this.#next++;
      const last = parameters.at(-1);
      const listener = typeof last === "function" ? (last as Waiting["listener"]) : undefined;
      this.#waiting.set(id, { resolve, reject, listener });
      this.#closed ||= method === "close";
      this.#worker.ref();
      const copied = listener ? parameters.slice(0, -1) : parameters;
      const message: Call = { id, method, parameters: copied, listens: listener !== undefined };
      this.#worker.postMessage(message);
    });
  }

  #settle(answer: Answer): void {
    const call = this.#waiting.get(answer.id);
    if ("told" in answer) {
      call?.listener?.(...answer.told);
      return;
    }
    this.#waiting.delete(answer.id);
    if (this.#waiting.size === 0) this.#worker.unref();
    if ("result" in answer) {
      call?.resolve(answer.result);
    } else {
      const { code, message, stack } = answer.error;
      call?.reject(Object.assign(new EngineError(code ?? "worker", message), { stack }));
    }
  }
}
