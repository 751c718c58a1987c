/** The parts of a run on Kubernetes, in the order in which they reconcile. */
import type { AnyPart } from "../part.ts";
import { access } from "./access/part.ts";
import { actors } from "./actors/part.ts";
import { admission, quota } from "./admission/part.ts";
import { certificates } from "./certificates/part.ts";
import { generators } from "./generators/part.ts";
import { inputs } from "./inputs/part.ts";
import { learner, learnerStop, link } from "./learner/part.ts";
import { finalizer, lifecycle } from "./lifecycle/part.ts";
import { notification } from "./notification/part.ts";
import { results } from "./results/part.ts";
import { detachment, volume, volumeName } from "./volume/part.ts";

export const PARTS: readonly AnyPart[] = [
  notification,
  // Kueue's answer first: it may stop the run, and it chooses the nodes in the pod templates.
  admission,
  volumeName,
  lifecycle,
  // The finalizer is on the run before its learner starts, or else a deletion would not wait for a checkpoint.
  finalizer,
  // Kueue must know a pod's requests before the pod is created.
  quota,
  // A learner that must end waits for no other object.
  learnerStop,
  // What the learner needs, then the learner.
  volume,
  access,
  certificates,
  inputs,
  learner,
  detachment,
  link,
  // Their number follows from what the learner says.
  actors,
  generators,
  results,
];
