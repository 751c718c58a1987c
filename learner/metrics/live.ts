/** Values that change between two lines of `metrics.jsonl`, read when Prometheus scrapes. */
import { statfsSync } from "node:fs";
import { Gauge, type Registry } from "prom-client";
import { messages, type StatusMessage } from "../../proto/service.ts";
import { certificateExpirations } from "../../proto/tls-folder.ts";

export interface LiveSources {
  status: { readonly current: StatusMessage; readonly secondsSinceProgress: number };
  /** The newest checkpoint; `committedAt` in Unix milliseconds. */
  checkpoint: () => { iteration: number; committedAt: number } | undefined;
  /** Start of the run in Unix milliseconds: counts as the checkpoint's time before there is one. */
  startedAt: number;
  directory: string;
  tlsDirectory: string;
}

/** Label values of `longrun_phase`: the phases of longrun.proto, e.g. `finalEvaluation`. */
const PHASES = Object.entries(messages.Phase)
  .filter(([, value]) => typeof value === "number")
  .map(([name, value]) => ({ name: camelCase(name.replace("FAILED_RUN", "FAILED")), value: Number(value) }));

/** Final phases, in which nothing changes any more. */
const FINAL = ["succeeded", "failed", "stopped"];
/** Label values of `longrun_waiting`: `Status.blocked` of longrun.proto. */
const WAITING = ["NoActors", "NoFreeSlots", "Executing", "Draining"];

/** Adds the gauges to the registry; they read the sources from now on. Call it once. */
export function observeLive(registry: Registry, sources: LiveSources): void {
  const { status, checkpoint, startedAt, directory, tlsDirectory } = sources;
  const gauge = (name: string, help: string, labelNames: string[], collect: (gauge: Gauge) => void) =>
    new Gauge({
      name: `longrun_${name}`,
      help,
      labelNames,
      registers: [registry],
      collect() {
        collect(this);
      },
    });
  const number = (name: string, help: string, value: () => number) => gauge(name, help, [], (it) => it.set(value()));
  const phase = () => PHASES.find(({ value }) => value === (status.current.phase ?? 0))?.name ?? "";
  const actors = () => status.current.actors ?? [];
  const bytes = (field: "blocks" | "bavail") => {
    const facts = statfsSync(directory);
    return facts.bsize * facts[field];
  };

  gauge("phase", "1 for the learner's present phase, 0 for the others", ["phase"], (it) => {
    const current = phase();
    for (const { name } of PHASES) it.set({ phase: name }, name === current ? 1 : 0);
  });
  const progress = "Unix time of the newest progress; absent once the run is over";
  gauge("progress_timestamp_seconds", progress, [], (it) => {
    if (FINAL.includes(phase())) it.remove();
    else it.set(Date.now() / 1000 - status.secondsSinceProgress);
  });
  const waiting = "1 for the obstacle of a learner that has waited 30 s without a result";
  gauge("waiting", waiting, ["reason"], (it) => {
    for (const reason of WAITING) it.set({ reason }, status.current.blocked === reason ? 1 : 0);
  });
  number("stopping_iterations", "Number of iterations of the whole run", () => status.current.iterations ?? 0);
  gauge("actors", "Actors by state: serving, draining, or away (not connected, with executions)", ["state"], (it) => {
    const counts = { serving: 0, draining: 0, away: 0 };
    for (const { connected, draining } of actors()) counts[!connected ? "away" : draining ? "draining" : "serving"]++;
    for (const [state, count] of Object.entries(counts)) it.set({ state }, count);
  });
  number("slots", "Executions that the serving actors can run at once", () =>
    actors().reduce((sum, { connected, draining, slots }) => sum + (connected && !draining ? (slots ?? 0) : 0), 0),
  );
  const newest = "Unix time of the newest checkpoint; before the first one, of the run's start";
  number("checkpoint_timestamp_seconds", newest, () => (checkpoint()?.committedAt ?? startedAt) / 1000);
  const held = "Iteration that the newest checkpoint holds; 0 before the first";
  number("checkpoint_iteration", held, () => checkpoint()?.iteration ?? 0);
  number("volume_size_bytes", "Size of the file system that holds the run", () => bytes("blocks"));
  number("volume_free_bytes", "Free bytes of that file system that the learner may use", () => bytes("bavail"));
  const expiration = "Unix time at which a certificate in use expires: the own one, or the authority's";
  gauge("certificate_expiration_timestamp_seconds", expiration, ["certificate"], (it) => {
    for (const [certificate, seconds] of Object.entries(certificateExpirations(tlsDirectory) ?? {}))
      it.set({ certificate }, seconds);
  });
}

function camelCase(name: string): string {
  return name.toLowerCase().replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}
