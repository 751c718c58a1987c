/** Runs kubectl, as a person would. The test changes the cluster only through it. */
import { execFile, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

export interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
}

export interface TrainingRunObject {
  metadata: { name: string; uid: string };
  spec: Record<string, never>;
  status?: {
    phase?: string;
    iteration?: number;
    conditions?: Condition[];
    checkpoint?: { iteration?: number };
    generation?: { ready?: number; replicas?: number; policyVersion?: number };
    images?: { learner?: string };
    actors?: { running?: number; desired?: number; replicas?: number };
  };
}

export class Kubectl {
  readonly #path: string;
  readonly #base: string[];

  /** @param namespace of objects that name none; absent: `default` */
  constructor(path: string, kubeconfig: string, namespace?: string) {
    this.#path = path;
    this.#base = ["--kubeconfig", kubeconfig, ...(namespace === undefined ? [] : ["--namespace", namespace])];
  }

  /** Returns standard output. @throws Error with kubectl's message */
  async run(...args: string[]): Promise<string> {
    try {
      return (await run(this.#path, [...this.#base, ...args], { maxBuffer: 64 << 20, timeout: 180_000 })).stdout;
    } catch (cause) {
      const { stderr, message } = cause as Error & { stderr?: string };
      throw new Error(`kubectl ${args.join(" ")}: ${stderr?.trim() || message}`, { cause });
    }
  }

  async json<T>(...args: string[]): Promise<T> {
    return JSON.parse(await this.run(...args, "--output", "json"));
  }

  async items<T>(...args: string[]): Promise<T[]> {
    return (await this.json<{ items: T[] }>("get", ...args)).items;
  }

  /** Applies an object that is not in a file. */
  apply(object: object, ...args: string[]): Promise<string> {
    return this.#send(object, ["apply", "--filename", "-", ...args]);
  }

  /** Posts an object to a path of the API server, such as a pod's eviction. */
  post(path: string, object: object): Promise<string> {
    return this.#send(object, ["create", "--raw", path, "--filename", "-"]);
  }

  #send(object: object, args: string[]): Promise<string> {
    return new Promise((resolve, reject) => {
      const child = execFile(this.#path, [...this.#base, ...args], (error, stdout, stderr) =>
        error ? reject(new Error(stderr.trim())) : resolve(stdout),
      );
      child.stdin!.end(JSON.stringify(object));
    });
  }

  /** Collects lines of `kubectl get … --watch` until it is stopped. */
  watch(onLine: (line: string) => void, ...args: string[]): { stop(): void } {
    const child = spawn(this.#path, [...this.#base, "get", ...args, "--watch"], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    let rest = "";
    child.stdout.on("data", (chunk) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop()!;
      for (const line of lines) onLine(line);
    });
    return { stop: () => child.kill() };
  }

  trainingRun(name: string): Promise<TrainingRunObject> {
    return this.json<TrainingRunObject>("get", "trainingrun", name);
  }

  /** Polls until `holds` returns a value. @throws Error that names the awaited state, with the run's conditions */
  async until<T>(what: string, timeoutSeconds: number, holds: () => Promise<T | undefined | false>): Promise<T> {
    const deadline = performance.now() + timeoutSeconds * 1000;
    let last: unknown;
    while (performance.now() < deadline) {
      try {
        const found = await holds();
        if (found !== undefined && found !== false) return found;
        last = undefined;
      } catch (error) {
        last = error;
      }
      await sleep(500);
    }
    throw new Error(`not within ${timeoutSeconds} s: ${what}${last ? ` (${(last as Error).message})` : ""}`);
  }

  /** Waits for a condition of a TrainingRun; a failed one ends the wait. */
  condition(name: string, type: string, status: string, timeoutSeconds: number): Promise<Condition> {
    return this.until(`TrainingRun ${name} has condition ${type}=${status}`, timeoutSeconds, async () => {
      const { conditions = [] } = (await this.trainingRun(name)).status ?? {};
      return conditions.find((condition) => condition.type === type && condition.status === status);
    });
  }
}
