/**
 * Calls methods of an object that lives in a worker thread. The thread serves calls in their order, one at a time; consecutive calls of
 * one turn run side by side (`Turns`), and a method may end its turn before it is done. Parameters are copied, with three exceptions:
 *
 * - Numbers in a SharedArrayBuffer are shared.
 * - A function as the last parameter stays in the calling thread: while the method runs, its calls of the function are sent back.
 * - An AbortSignal in the property `signal` of a parameter stays in the calling thread: an abort is sent on to the method's own signal.
 */
import { type MessagePort, Worker } from "node:worker_threads";
import { EngineError } from "./errors.ts";

type Question =
  | {
      id: number;
      method: string;
      parameters: unknown[];
      /** a function is a further parameter, and stays in the calling thread */
      listens: boolean;
      /** index of the parameter with a signal, which stays in the calling thread */
      signalled: number;
    }
  | { id: number; aborted: true };

type Answer =
  | { id: number; told: unknown[] }
  | { id: number; result: unknown }
  | { id: number; error: { name: string; code?: string; message: string; stack?: string } };

type Methods = Record<string, (...parameters: unknown[]) => unknown>;

/** The methods of T as another thread calls them: each returns a promise. */
export type Remote<T> = {
  [M in keyof T]: T[M] extends (...parameters: infer P) => infer R ? (...parameters: P) => Promise<Awaited<R>> : never;
};

/** Runs work in turns, first come, first served. Consecutive work with the same name is one turn and runs side by side. */
class Turns {
  #name: string | undefined;
  /** calls of this turn that have not ended */
  readonly #open = new Set<Promise<unknown>>();
  #before: Promise<unknown> = Promise.resolve();

  /** @param name default: the work gets a turn of its own */
  take(name: string | undefined, work: () => Promise<unknown>): void {
    if (name === undefined || name !== this.#name) {
      this.#before = Promise.all([this.#before, ...this.#open]);
      this.#open.clear();
    }
    this.#name = name;
    const done: Promise<unknown> = this.#before.then(work).finally(() => this.#open.delete(done));
    this.#open.add(done);
  }
}

/**
 * Answers the calls that arrive at `port`. The first call calls `make`. After `close` the thread can end.
 *
 * @param turnOf names the turn that a call may share with others
 * @param endsEarly whether a method's turn ends, at the latest, when it calls its last parameter, a function, which it then always has
 */
export function serveCalls(
  port: MessagePort,
  make: () => object | Promise<object>,
  turnOf: (method: string, parameters: readonly unknown[]) => string | undefined = () => undefined,
  endsEarly: (method: string) => boolean = () => false,
): void {
  const turns = new Turns();
  const signals = new Map<number, AbortController>();
  let target: Promise<Methods> | undefined;
  const answer = (message: Answer) => port.postMessage(message);
  port.on("message", (question: Question) => {
    const { id } = question;
    if ("aborted" in question) return signals.get(id)?.abort();
    const { method, parameters, listens, signalled } = question;
    if (signalled >= 0) {
      const controller = new AbortController();
      signals.set(id, controller);
      parameters[signalled] = { ...(parameters[signalled] as object), signal: controller.signal };
    }
    const { promise: early, resolve: endTurn } = Promise.withResolvers<void>();
    const ends = endsEarly(method);
    const callback = (...told: unknown[]) => {
      if (listens) answer({ id, told });
      if (ends) endTurn();
    };
    const run = async () => {
      try {
        target ??= Promise.resolve(make() as Methods | Promise<Methods>);
        const methods = await target;
        answer({ id, result: await methods[method]!(...parameters) });
        if (method === "close") port.close();
      } catch (cause) {
        const { name, code, message, stack } = cause as Error & { code?: string };
        answer({ id, error: { name, code, message, stack } });
      }
      signals.delete(id);
    };
    turns.take(turnOf(method, parameters), () => {
      if (listens || ends) parameters.push(callback);
      return Promise.race([run(), early]);
    });
  });
}

type Signalled = { signal?: AbortSignal };

interface Waiting {
  resolve: (result: unknown) => void;
  reject: (error: Error) => void;
  listener: ((...told: unknown[]) => void) | undefined;
  signal: AbortSignal | undefined;
  /** stops listening to the signal */
  settled: () => void;
}

/** A worker thread and the methods of the object T in it. The thread keeps its process alive only while a call is open. */
export class WorkerThread<T extends object> {
  /** @throws EngineError with the code of the thread's error, or `worker` */
  readonly calls: Remote<T>;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #next = 0;
  #closed = false;
  #failure: EngineError | undefined;

  /**
   * @param file the thread's module, which calls `serveCalls`
   * @param workerData data that the thread gets at its start
   * @param what the thread's name in errors, such as "the engine's thread"
   * @param onFailure called once, if the thread fails or ends without a call of `close`
   */
  constructor(file: URL, workerData: unknown, what: string, onFailure: (failure: EngineError) => void = () => {}) {
    this.#worker = new Worker(file, { workerData });
    const end = (message: string, cause?: unknown) => {
      if (this.#failure) return;
      this.#failure = new EngineError("worker", `${what} ${message}`, { cause });
      for (const { reject, settled } of this.#waiting.values()) {
        settled();
        reject(this.#failure);
      }
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

  /** The error of every call after the thread has failed or ended. */
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
      const copied = listener ? parameters.slice(0, -1) : [...parameters];
      const signalled = copied.findIndex((it) => (it as Signalled | undefined)?.signal instanceof AbortSignal);
      const { signal, ...others } = (copied[signalled] ?? {}) as Signalled;
      if (signal?.aborted) return reject(signal.reason);
      if (signal) copied[signalled] = others;
      const abort = () => this.#worker.postMessage({ id, aborted: true } satisfies Question);
      signal?.addEventListener("abort", abort);
      const settled = () => signal?.removeEventListener("abort", abort);
      this.#waiting.set(id, { resolve, reject, listener, signal, settled });
      this.#closed ||= method === "close";
      this.#worker.ref();
      const listens = listener !== undefined;
      this.#worker.postMessage({ id, method, parameters: copied, listens, signalled } satisfies Question);
    });
  }

  #settle(answer: Answer): void {
    const call = this.#waiting.get(answer.id);
    if ("told" in answer) {
      call?.listener?.(...answer.told);
      return;
    }
    call?.settled();
    this.#waiting.delete(answer.id);
    if (this.#waiting.size === 0) this.#worker.unref();
    if ("result" in answer) {
      call?.resolve(answer.result);
    } else if (call?.signal?.aborted) {
      call.reject(call.signal.reason);
    } else {
      const { code, message, stack } = answer.error;
      call?.reject(Object.assign(new EngineError(code ?? "worker", message), { stack }));
    }
  }
}
