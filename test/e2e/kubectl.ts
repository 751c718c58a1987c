/** Runs kubectl, as a person would. The test changes the cluster only through it. */
import { execFile, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { Live } from "./live.ts";

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

const RUNS = "/apis/longrun.dev/v1alpha1/namespaces/NAMESPACE/trainingruns";
const PODS = "/api/v1/namespaces/NAMESPACE/pods";
/** Time between two looks at what no watch shows. */
const LOOK_MS = 200;

export class Kubectl {
  readonly #path: string;
  readonly #base: string[];
  readonly #namespace: string;
  readonly #live = new Map<string, Live<never>>();

  /** @param namespace of objects that name none; absent: `default` */
  constructor(path: string, kubeconfig: string, namespace?: string) {
    this.#path = path;
    this.#namespace = namespace ?? "default";
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

  /** Looks until `holds` returns a value. @throws Error that names the awaited state */
  async until<T>(what: string, timeoutSeconds: number, holds: () => Promise<T | undefined | false>): Promise<T> {
    return this.#until(what, timeoutSeconds, holds, () => sleep(LOOK_MS));
  }

  /** Waits until `holds` returns a value for the run as a watch shows it. Earlier it may still be as before this process's last write. */
  untilRun<T>(
    name: string,
    what: string,
    timeoutSeconds: number,
    holds: (run: TrainingRunObject) => T | undefined | false,
  ): Promise<T> {
    return this.#untilLive<TrainingRunObject, T>(RUNS, `TrainingRun ${name}: ${what}`, timeoutSeconds, (runs) => {
      const run = runs.find(({ metadata }) => metadata.name === name);
      return run && holds(run);
    });
  }

  /** Waits until `holds` returns a value for the pods with these labels, as a watch shows them. */
  untilPods<Pod extends { metadata: { name: string; labels?: Record<string, string> } }, T>(
    labels: Record<string, string>,
    what: string,
    timeoutSeconds: number,
    holds: (pods: Pod[]) => T | undefined | false,
  ): Promise<T> {
    const wanted = Object.entries(labels);
    return this.#untilLive<Pod, T>(PODS, what, timeoutSeconds, (pods) =>
      holds(pods.filter(({ metadata }) => wanted.every(([name, value]) => metadata.labels?.[name] === value))),
    );
  }

  /** Waits for a condition of a TrainingRun. */
  condition(name: string, type: string, status: string, timeoutSeconds: number): Promise<Condition> {
    return this.untilRun(name, `condition ${type}=${status}`, timeoutSeconds, (run) =>
      run.status?.conditions?.find((condition) => condition.type === type && condition.status === status),
    );
  }

  /** Ends all watches. */
  close(): void {
    for (const live of this.#live.values()) live.stop();
    this.#live.clear();
  }

  #untilLive<T extends { metadata: { name: string } }, Found>(
    path: string,
    what: string,
    timeoutSeconds: number,
    holds: (objects: T[]) => Found | undefined | false,
  ): Promise<Found> {
    const live = (this.#live.get(path) ??
      new Live<T>([this.#path, ...this.#base], path.replace("NAMESPACE", this.#namespace))) as Live<T>;
    this.#live.set(path, live as Live<never>);
    const look = async () => live.objects && holds(live.objects);
    return this.#until(what, timeoutSeconds, look, (leftMs) => live.change(leftMs));
  }

  async #until<T>(
    what: string,
    timeoutSeconds: number,
    holds: () => Promise<T | undefined | false>,
    pause: (leftMs: number) => Promise<void>,
  ): Promise<T> {
    const deadline = performance.now() + timeoutSeconds * 1000;
    let last: unknown;
    for (;;) {
      try {
        const found = await holds();
        if (found !== undefined && found !== false) return found;
        last = undefined;
      } catch (error) {
        last = error;
      }
      const leftMs = Math.ceil(deadline - performance.now());
      if (leftMs <= 0) break;
      await pause(leftMs);
    }
    throw new Error(`not within ${timeoutSeconds} s: ${what}${last ? ` (${(last as Error).message})` : ""}`);
  }
}
