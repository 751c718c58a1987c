/**
 * What changes between two lines of `metrics.jsonl`, read when Prometheus scrapes: what the learner does and waits for,
 * its actors, its newest checkpoint, its disk and its certificates.
 */
import { statfsSync } from "node:fs";
import { Gauge, type Registry } from "prom-client";
import { messages, type StatusMessage } from "../../proto/service.ts";
import { certificateExpirations } from "../../proto/tls-folder.ts";

export interface LiveSources {
  status: { readonly current: StatusMessage; readonly secondsSinceProgress: number };
  /** The newest checkpoint; `committedAt` in Unix milliseconds. */
  checkpoint: () => { iteration: number; committedAt: number } | undefined;
  /** Of the run, Unix milliseconds: how old its checkpoint is before there is one. */
  startedAt: number;
  /** Of the run. */
  directory: string;
  tlsDirectory: string;
}

/** Label values of `longrun_phase`: the phases of longrun.proto, e.g. `finalEvaluation`. */
export const PHASES = Object.keys(messages.Phase)
  .filter((name) => Number.isNaN(Number(name)))
  .map((name) => ({
    name: camelCase(name === "FAILED_RUN" ? "FAILED" : name),
    value: Number(messages.Phase[name as never]),
  }));

/** After these nothing comes on any more. */
const FINAL = ["succeeded", "failed", "stopped"];
/** Label values of `longrun_waiting`: `Status.blocked` of longrun.proto. */
const WAITING = ["NoActors", "NoFreeSlots", "Executing", "Draining"];

/** Adds the gauges to the registry; they read the sources from now on. Call once. */
export function observeLive(registry: Registry, sources: LiveSources): void {
  const { status, checkpoint, startedAt, directory, tlsDirectory } = sources;
  const gauge = (name: string, labelNames: string[], help: string, collect: (gauge: Gauge) => void) =>
    new Gauge({
      ...{ name: `longrun_${name}`, help, labelNames, registers: [registry] },
      collect() {
        collect(this);
      },
    });
  const phase = () => PHASES.find(({ value }) => value === (status.current.phase ?? 0))?.name ?? "";

  gauge("phase", ["phase"], "1 for what the learner does now, 0 for the other phases", (it) => {
    const current = phase();
    for (const { name } of PHASES) it.set({ phase: name }, name === current ? 1 : 0);
  });
  const progress = "Unix time at which the work last came on; absent once the run is over";
  gauge("progress_timestamp_seconds", [], progress, (it) => {
    if (FINAL.includes(phase())) it.remove();
    else it.set(Date.now() / 1000 - status.secondsSinceProgress);
  });
  const waiting = "1 for what the learner waits for while no result comes, once it has waited 30 s";
  gauge("waiting", ["reason"], waiting, (it) => {
    for (const reason of WAITING) it.set({ reason }, status.current.blocked === reason ? 1 : 0);
  });
  gauge("stopping_iterations", [], "Iterations that the run has in all", (it) =>
    it.set(status.current.iterations ?? 0),
  );
  gauge("actors", ["state"], "Actors by state: serving, draining, or away (not connected, with executions)", (it) => {
    const counts = { serving: 0, draining: 0, away: 0 };
    for (const { connected, draining } of status.current.actors ?? [])
      counts[!connected ? "away" : draining ? "draining" : "serving"]++;
    for (const [state, count] of Object.entries(counts)) it.set({ state }, count);
  });
  gauge("slots", [], "Executions that the serving actors can run at once", (it) => {
    const serving = (status.current.actors ?? []).filter(({ connected, draining }) => connected && !draining);
    it.set(serving.reduce((sum, { slots }) => sum + (slots ?? 0), 0));
  });
  const newest = "Unix time of the newest checkpoint; before the first, of the run's start";
  gauge("checkpoint_timestamp_seconds", [], newest, (it) => it.set((checkpoint()?.committedAt ?? startedAt) / 1000));
  gauge("checkpoint_iteration", [], "Iteration that the newest checkpoint holds; 0 before the first", (it) =>
    it.set(checkpoint()?.iteration ?? 0),
  );
  gauge("volume_size_bytes", [], "Size of the file system that holds the run", (it) => {
    const { bsize, blocks } = statfsSync(directory);
    it.set(bsize * blocks);
  });
  gauge("volume_free_bytes", [], "Of it, what the learner may still write", (it) => {
    const { bsize, bavail } = statfsSync(directory);
    it.set(bsize * bavail);
  });
  const expiration = "Unix time at which a certificate in use expires: own, or the authority's";
  gauge("certificate_expiration_timestamp_seconds", ["certificate"], expiration, (it) => {
    for (const [certificate, seconds] of Object.entries(certificateExpirations(tlsDirectory) ?? {}))
      it.set({ certificate }, seconds);
  });
}

function camelCase(name: string): string {
  return name.toLowerCase().replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}
