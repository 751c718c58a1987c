/** Measures a run after its reconcile. */
import type { TrainingRunStatus } from "../../../crds/trainingrun.ts";
import type { Look } from "../context.ts";
import { isActive } from "../observe.ts";
import type { Done, Report } from "../part.ts";
import { labelsOf } from "../parts/actors/actor-jobs.ts";
import { isDraining } from "../parts/actors/scale.ts";

/** Stages in which a learner should answer. */
const LEARNER_DUE = ["Initialising", "Running", "Refused"];

/** @param status the run's status now, whether or not it was written */
export function measure(
  look: Look,
  status: TrainingRunStatus,
  { lifecycle: { stage }, scale: { demand, desired }, generation, certified }: Done,
  reports: Report[],
): void {
  const { observed } = look;
  const active = observed.actors.filter(isActive);
  const counts = { running: 0, starting: 0, draining: 0 };
  for (const actor of active) counts[isDraining(actor) ? "draining" : (actor.state as "running" | "starting")]++;
  const said = observed.link?.status?.executions;
  const certificates = reports.flatMap((report) => report.certificates ?? []);
  look.context.metrics.observe(labelsOf(look), {
    run: observed.run,
    status,
    demand,
    executions: said && {
      completed: said.completed,
      lost: said.lost,
      retried: said.retried,
      disrupted: said.disrupted,
    },
    actors: { desired, ...counts, idle: status.actors?.idle ?? 0 },
    generators: generation?.replicas ?? 0,
    learnerDue: LEARNER_DUE.includes(stage),
    // A finished run neither uses nor renews its certificates.
    certificatesExpireAtMs:
      stage === "Ended" || !certified ? undefined : Math.min(...certificates.map(({ expireAtMs }) => expireAtMs)),
  });
}
