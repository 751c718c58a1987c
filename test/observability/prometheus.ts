/** Runs the real Prometheus and promtool for tests; test/cluster/binaries.ts finds or builds them. */
import { spawnSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { stringify } from "yaml";
import { findBinary } from "../cluster/binaries.ts";
import { freePorts, startGuard, startPart } from "../cluster/processes.ts";

const READY_SECONDS = 60;

/** @throws Error if promtool is missing: call `missingBinaries` first */
export function promtool(args: string[], input = ""): { status: number | null; output: string } {
  const path = findBinary("promtool");
  if (path === undefined) throw new Error("promtool is missing");
  const { status, stdout, stderr } = spawnSync(path, args, { input, encoding: "utf8", timeout: 60_000 });
  return { status, output: stdout + stderr };
}

interface ScrapeTarget {
  job: string;
  /** `HOST:PORT` */
  address: string;
  labels?: Record<string, string>;
  /** The target's own labels take precedence over the scrape's. */
  honorLabels?: boolean;
}

/** A series as in the HTTP API. */
export interface Series {
  metric: Record<string, string>;
  /** Values of a range; Unix seconds and number. */
  values?: [number, string][];
  /** Value of an instant. */
  value?: [number, string];
}

export interface Prometheus {
  url: string;
  query(query: string, at?: number): Promise<Series[]>;
  queryRange(query: string, from: number, to: number, stepSeconds: number): Promise<Series[]>;
  get<T>(path: string): Promise<T>;
  stop(): Promise<void>;
}

/** Starts a Prometheus that scrapes every two seconds; its data are deleted at its end. @param rules files */
export async function startPrometheus(targets: ScrapeTarget[], rules: string[]): Promise<Prometheus> {
  return startConfigured({
    global: { scrape_interval: "2s", scrape_timeout: "2s", evaluation_interval: "1s" },
    rule_files: rules,
    scrape_configs: targets.map(({ job, address, labels, honorLabels }, index) => ({
      job_name: `${job}-${index}`,
      honor_labels: honorLabels ?? false,
      static_configs: [{ targets: [address], ...(labels && { labels }) }],
    })),
  });
}

/** Starts a Prometheus. @param inNode a process whose network namespace it joins, and that namespace's address for this machine */
export async function startConfigured(config: object, inNode?: { pid: number; host: string }): Promise<Prometheus> {
  const folder = await mkdtemp(join(tmpdir(), "longrun-prometheus-"));
  const [port] = await freePorts(1);
  const file = join(folder, "prometheus.yml");
  await writeFile(file, stringify(config));
  const address = `${inNode?.host ?? "127.0.0.1"}:${port}`;
  const url = `http://${address}`;
  const [program, ...args] = [
    ...(inNode ? ["nsenter", "--target", String(inNode.pid), "--net", "--"] : []),
    findBinary("prometheus")!,
    ...[`--config.file=${file}`, `--storage.tsdb.path=${join(folder, "data")}`, `--web.listen-address=${address}`],
  ];
  const part = startPart(program!, args, join(folder, "prometheus.log"));
  const guard = startGuard(folder);
  guard.watch(part.pid);
  const get = async <T>(path: string): Promise<T> => {
    const response = await fetch(`${url}${path}`);
    const { status, data, error } = (await response.json()) as { status: string; data: T; error?: string };
    if (status !== "success") throw new Error(`${decodeURIComponent(path)}: ${error}`);
    return data;
  };
  const ask = async (path: string, parameters: Record<string, string | number>): Promise<Series[]> => {
    const text = new URLSearchParams(
      Object.entries(parameters).map(([name, value]): [string, string] => [name, String(value)]),
    );
    return (await get<{ result: Series[] }>(`${path}?${text}`)).result;
  };
  const stop = async () => {
    await part.stop();
    guard.stop();
    await rm(folder, { recursive: true, force: true });
  };
  for (const start = performance.now(); ; await sleep(100)) {
    if ((await fetch(`${url}/-/ready`).catch(() => undefined))?.ok) break;
    if (part.ended() !== undefined || performance.now() - start > READY_SECONDS * 1000) {
      const why = part.ended() ?? `prometheus was not ready within ${READY_SECONDS} s`;
      await stop();
      throw new Error(why);
    }
  }
  return {
    url,
    get,
    query: (query, at = Date.now() / 1000) => ask("/api/v1/query", { query, time: at }),
    queryRange: (query, start, end, step) => ask("/api/v1/query_range", { query, start, end, step }),
    stop,
  };
}
