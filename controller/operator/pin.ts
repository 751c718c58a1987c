/**
 * Determines a run's images and pod templates. A run keeps its first images and templates until its user suspends and resumes it (`spec.upgradePolicy:
 * OnResume`): an upgraded controller, or other defaults of the administrator, replace no pod. The images are stored on the learner's
 * Deployment with the pod template that they belong to, so a controller that ends between two writes leaves no status with other images
 * than the pods have. Pure.
 */
import type { ImagesStatus } from "../../crds/trainingrun.ts";
import type { Inputs } from "./desired/inputs.ts";
import { digestOf, IMAGES, INPUT_HASH, SPEC_HASH } from "./desired/names.ts";
import type { Settings } from "./desired/settings.ts";
import type { Deployment } from "./kube/resources.ts";
import type { Observed, ObservedActor } from "./observe.ts";
import type { LifecyclePlan } from "./parts/lifecycle/lifecycle.ts";
import { findCondition } from "./status/conditions.ts";

export type Images = Required<ImagesStatus>;

/** Returns the run's images, if it has some. None under `Immediately`, which follows the controller. */
export function pinnedImages({ run, deployment }: Observed): Partial<Images> | undefined {
  if (run.spec.upgradePolicy === "Immediately") return undefined;
  if (!deployment) return run.status?.images; // the Deployment was deleted
  return parseImages(deployment.metadata.annotations?.[IMAGES]) ?? unmarked(run, deployment);
}

/** Returns the controller's settings, with the run's own images instead of the defaults. */
export function pinnedSettings(observed: Observed, settings: Settings): Settings {
  const { image, actorImage, sandboxImage } = settings;
  const { learner = image, actor = actorImage, sandbox = sandboxImage } = pinnedImages(observed) ?? {};
  return { ...settings, image: learner, actorImage: actor, sandboxImage: sandbox };
}

/**
 * Returns the Deployment's note of the run's images. It is empty before the learner has answered, so that a default that cannot run can be
 * replaced, and empty once the run is suspended, so that a resume pins the images again.
 */
export function imagesNote(observed: Observed, { stage }: LifecyclePlan, settings: Settings): string {
  const answers = findCondition(observed.run.status?.conditions, "LearnerAvailable")?.status === "True";
  if (stage === "Suspended" || !(answers || pinnedImages(observed))) return "";
  const { image: learner, actorImage: actor, sandboxImage: sandbox } = settings;
  return JSON.stringify({ learner, actor, sandbox } satisfies Images);
}

/** Returns the content of `status.images`. */
export function imagesStatus(
  observed: Observed,
  { stage }: LifecyclePlan,
  settings: Settings,
): ImagesStatus | undefined {
  const { run, deployment } = observed;
  if (stage === "Ended") return run.status?.images;
  const pinned = deployment ? deployment.metadata.annotations?.[IMAGES] : pinnedImages(observed);
  if (stage === "Suspended" || !pinned) return undefined;
  const { learner, actors } = run.spec;
  return {
    learner: learner.image ?? settings.image,
    actor: actors.image ?? settings.actorImage,
    sandbox: actors.sandboxImage ?? settings.sandboxImage,
  };
}

/**
 * @param hash hash of the learner's pod as it would be created now
 * @returns the Deployment whose pod template stays, although this controller would create another one from the same spec. Undefined: use
 * the template that this controller creates
 */
export function keptLearner(
  { run, deployment }: Observed,
  hash: string,
  inputs: Inputs,
  claimName: string,
): Deployment | undefined {
  if (!deployment || run.spec.upgradePolicy === "Immediately") return undefined;
  const { [IMAGES]: images, [INPUT_HASH]: asked, [SPEC_HASH]: made } = deployment.metadata.annotations ?? {};
  if (made === hash) return undefined;
  const keeps =
    images === undefined
      ? isUnmarked(deployment) && isSeen(run)
      : images !== "" && asked === askedOf(inputs, claimName);
  return keeps ? deployment : undefined;
}

const askedOf = ({ learner }: Inputs, claimName: string): string => digestOf([learner, claimName]);

/** Returns the desired Deployment with the annotations that pin the run, and with the present pod template if it is kept. */
export function markLearner(
  desired: Deployment,
  kept: Deployment | undefined,
  { images, inputs, claimName }: { images: string; inputs: Inputs; claimName: string },
): Deployment {
  const hash = (kept ?? desired).metadata.annotations?.[SPEC_HASH] ?? "";
  const own = { [SPEC_HASH]: hash, [INPUT_HASH]: askedOf(inputs, claimName), [IMAGES]: images };
  const { template } = (kept ?? desired).spec!;
  const annotations = { ...desired.metadata.annotations, ...own };
  return { ...desired, metadata: { ...desired.metadata, annotations }, spec: { ...desired.spec!, template } };
}

/** Returns whether an actor stays, although this controller would create another one from the same spec. */
export function isKeptActor({ run }: Observed, { job }: ObservedActor, inputs: Inputs): boolean {
  if (run.spec.upgradePolicy === "Immediately") return false;
  const asked = job.metadata.annotations?.[INPUT_HASH];
  return asked === undefined ? isSeen(run) : asked === inputs.actor;
}

/**
 * Returns whether longrun 0.2 or earlier, which pinned nothing, created the Deployment: it stays unchanged and is annotated from now on.
 */
function isUnmarked({ metadata, spec }: Deployment): boolean {
  return metadata.annotations?.[IMAGES] === undefined && (spec?.replicas ?? 0) > 0;
}

function unmarked(run: Observed["run"], deployment: Deployment): Partial<Images> | undefined {
  if (!isUnmarked(deployment)) return undefined;
  if (run.spec.learner.image !== undefined) return {};
  const image = deployment.spec?.template.spec?.containers.find(({ name }) => name === "learner")?.image;
  return image === undefined ? {} : { learner: image };
}

/** Returns whether a controller has handled this generation of the spec. */
export function isSeen({ status, metadata }: Observed["run"]): boolean {
  return status?.observedGeneration === metadata.generation;
}

function parseImages(note: string | undefined): Partial<Images> | undefined {
  try {
    const images: unknown = JSON.parse(note || "null");
    const texts = Object.entries(images ?? {}).filter(([, image]) => typeof image === "string" && image !== "");
    return texts.length > 0 ? Object.fromEntries(texts) : undefined;
  } catch {
    return undefined;
  }
}
