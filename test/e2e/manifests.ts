/** The quickstart's manifest with smaller numbers, and volumes of the node. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { NODE_NAME } from "../cluster/node-config.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Samples per iteration. */
export const BATCH = 8;

/** Returns a StorageClass whose volumes are folders of the node that exist before anybody claims them. */
export function localClass(name: string, isDefault = false) {
  const annotations = { "storageclass.kubernetes.io/is-default-class": String(isDefault) };
  return {
    ...{ apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: { name, annotations } },
    ...{ provisioner: "kubernetes.io/no-provisioner", volumeBindingMode: "WaitForFirstConsumer" },
  };
}

export function localVolume(name: string, storageClassName: string, path: string, storage: string) {
  const matchExpressions = [{ key: "kubernetes.io/hostname", operator: "In", values: [NODE_NAME] }];
  return {
    ...{ apiVersion: "v1", kind: "PersistentVolume", metadata: { name } },
    spec: {
      ...{ capacity: { storage }, accessModes: ["ReadWriteOnce"], storageClassName },
      ...{ persistentVolumeReclaimPolicy: "Retain", local: { path } },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
    },
  };
}

/** Returns the shipped manifest with smaller numbers and without evaluations, changed by `change`. */
export function manifest(
  name: string,
  iterations: number,
  change: (spec: Record<string, Record<string, unknown>>) => void,
) {
  const run = parse(readFileSync(join(ROOT, "manifests/quickstart/trainingrun.yaml"), "utf8"));
  run.metadata.name = name;
  run.spec.algorithm.batchSize = BATCH;
  run.spec.stopping.iterations = iterations;
  run.spec.evaluation = { before: false, after: false };
  change(run.spec);
  return run;
}
