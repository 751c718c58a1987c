/** Objects and digests that follow from the spec. They are remembered, because their computation is the longest part of a reconcile. */
import type { Look } from "../../context.ts";
import { desiredConfigMap } from "../../desired/config-map.ts";
import { type Inputs, inputsOf } from "../../desired/inputs.ts";
import { digestOf } from "../../desired/names.ts";
import type { ConfigMap } from "../../kube/resources.ts";
import { actorHash } from "../actors/desired.ts";
import type { Flavors } from "../admission/flavors.ts";

export interface Derived {
  /** Key of the generation, runtime, images and nodes that the objects were derived from. */
  of: string;
  config: ConfigMap;
  configHash: string;
  /** See actorHash. */
  actorHash: string;
  inputs: Inputs;
}

/** @param known the last result */
export function derive(
  { stored, observed: { run }, settings, runtime }: Look,
  flavors: Flavors | undefined,
  known: Derived | undefined,
): Derived {
  const { image, actorImage, sandboxImage } = settings;
  const of = [run.metadata.generation, runtime?.version, flavors?.of, image, actorImage, sandboxImage].join(" ");
  if (known?.of === of) return known;
  const config = desiredConfigMap(run);
  const hashes = { configHash: digestOf(config.data), actorHash: actorHash(run, settings) };
  return { of, config, ...hashes, inputs: inputsOf(stored, flavors?.choices) };
}
