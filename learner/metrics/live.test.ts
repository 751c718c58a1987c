import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Registry } from "prom-client";
import { writeRunCertificates } from "../../proto/certificates.ts";
import { Phase, StatusBoard } from "../server/status.ts";
import { type LiveSources, observeLive } from "./live.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-live-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const tls = await writeRunCertificates(join(folder, "tls"), { validSeconds: 600 });

function live(change: Partial<LiveSources> = {}) {
  const clock = { ms: 0 };
  const status = new StatusBoard({ now: () => clock.ms });
  const registry = new Registry();
  const sources = {
    status,
    checkpoint: () => undefined,
    startedAt: 7000,
    directory: folder,
    tlsDirectory: tls.learner,
  };
  observeLive(registry, { ...sources, ...change });
  const value = async (series: string) => {
    const row = (await registry.metrics()).split("\n").find((line) => line.startsWith(`longrun_${series} `));
    return row === undefined ? undefined : Number(row.slice(row.lastIndexOf(" ") + 1));
  };
  return { clock, status, value };
}

test("live metrics show which of all phases a run is in", async () => {
  const { status, value } = live();
  assert.equal(await value('phase{phase="starting"}'), 1);
  status.update({ phase: Phase.FINAL_EVALUATION });
  assert.equal(await value('phase{phase="starting"}'), 0);
  assert.equal(await value('phase{phase="finalEvaluation"}'), 1);
  assert.equal(await value('phase{phase="failed"}'), 0);
});

test("live metrics show the last progress of the phase, and no progress is due when the run is over", async () => {
  const { clock, status, value } = live();
  const sinceProgress = async () => Math.round(Date.now() / 1000 - (await value("progress_timestamp_seconds"))!);
  const cases: [change: Parameters<typeof status.update>[0], progress: boolean][] = [
    [{ phase: Phase.EXECUTING, phaseTotal: 8 }, true],
    [{ phaseDone: 1 }, true],
    [{ phaseDone: 1 }, false],
    [{ message: "waits", blocked: "NoActors" }, false],
    [{ phase: Phase.TRAINING }, true],
    [{ iterationJson: "{}" }, true],
  ];
  for (const [change, progress] of cases) {
    clock.ms += 100_000;
    const before = await sinceProgress();
    status.update(change);
    const since = await sinceProgress();
    assert.ok(progress ? since < 2 : since >= before, `${JSON.stringify(change)}: ${since} s`);
  }
  status.update({ phase: Phase.SUCCEEDED });
  assert.equal(await value("progress_timestamp_seconds"), undefined);
});

test("live metrics show what blocks the run, and its actors", async () => {
  const { status, value } = live();
  status.update({
    blocked: "NoFreeSlots",
    actors: [
      { connected: true, slots: 2 },
      { connected: true, slots: 4, draining: true },
      { connected: false, running: 1 },
    ],
  });
  assert.equal(await value('waiting{reason="NoFreeSlots"}'), 1);
  assert.equal(await value('waiting{reason="NoActors"}'), 0);
  for (const state of ["serving", "draining", "away"]) assert.equal(await value(`actors{state="${state}"}`), 1, state);
  assert.equal(await value("slots"), 2);
});

test("live metrics show the run's start as the checkpoint's time before the first checkpoint", async () => {
  assert.equal(await live().value("checkpoint_timestamp_seconds"), 7);
  const { value } = live({ checkpoint: () => ({ iteration: 4, committedAt: 9000 }) });
  assert.equal(await value("checkpoint_timestamp_seconds"), 9);
  assert.equal(await value("checkpoint_iteration"), 4);
});

test("live metrics show the disk's room and the certificates' end", async () => {
  const { value } = live();
  const [size, free] = [await value("volume_size_bytes"), await value("volume_free_bytes")];
  assert.ok(size! > 0 && free! > 0 && free! <= size!);
  const left = (await value('certificate_expiration_timestamp_seconds{certificate="own"}'))! - Date.now() / 1000;
  assert.ok(left > 500 && left <= 600, `${left}`);
});
