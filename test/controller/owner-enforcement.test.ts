/** The admission plugin OwnerReferencesPermissionEnforcement, as on OpenShift: who changes an owner needs the right to delete the object. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  CONFIG_MAP,
  DEPLOYMENT,
  NETWORK_POLICY,
  PERSISTENT_VOLUME_CLAIM,
  POD_DISRUPTION_BUDGET,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
} from "../../controller/operator/kube/resources.ts";
import { hasEvent, skip, start, useWorld, world } from "./steps.ts";
import { eventually } from "./world.ts";

useWorld({ parts: { apiServer: { "enable-admission-plugins": "OwnerReferencesPermissionEnforcement" } } });

const CHILDREN = [
  [CONFIG_MAP, "run-config"],
  [DEPLOYMENT, "run-learner"],
  [NETWORK_POLICY, "run-learner"],
  [PERSISTENT_VOLUME_CLAIM, "run-data"],
  [POD_DISRUPTION_BUDGET, "run-learner"],
  [SECRET, "run-ca"],
  [SECRET, "run-learner-tls"],
  [SERVICE, "run-learner"],
  [SERVICE_ACCOUNT, "run-learner"],
] as const;

describe("OwnerReferencesPermissionEnforcement", { skip, concurrency: 3 }, () => {
  for (const [resource, name] of CHILDREN)
    test(`A ${resource.kind} ${name} that lost its owner is adopted again`, async () => {
      const { namespace, run } = await start({ learner: { storage: { retain: "Never" } } });
      const key = { namespace, name };
      const owners = async () => (await world.client.get(resource, key))?.metadata.ownerReferences ?? [];
      assert.equal((await owners())[0]?.uid, run.metadata.uid);
      await world.client.mergePatch(resource, key, { metadata: { ownerReferences: null } });
      await eventually(async () => (await owners())[0]?.uid === run.metadata.uid);
      assert.equal((await owners())[0]!.blockOwnerDeletion, true);
      if (resource !== SECRET) await hasEvent(namespace, new RegExp(`^Repaired: ${resource.kind} ${name} was changed`));
    });
});
