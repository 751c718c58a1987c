/** The API server has written a Secret, and its answer was lost; the controller's cache has not seen the Secret yet. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { owned, takingCluster } from "../../reconcile.fixture.ts";
import { runOf } from "../../run.fixture.ts";

/** It needs no finalizer, so that its first reconcile writes its children. */
const RUN = runOf({ learner: { storage: { retain: "Never" } } });

test("An authority that the cache lacks is kept, and nothing is signed by another one", async () => {
  const { applied, lookAt } = takingCluster(
    RUN,
    {},
    { stored: { Secret: [{ metadata: owned("quick-ca", RUN.metadata.uid) }] } },
  );
  await lookAt(0);
  assert.deepEqual(
    applied.filter(({ kind }) => kind === "Secret").map(({ object }) => object.metadata.name),
    [],
  );
});

test("Without such a Secret, the authority and the learner's certificate are written", async () => {
  const { applied, lookAt } = takingCluster(RUN);
  await lookAt(0);
  const names = applied.filter(({ kind }) => kind === "Secret").map(({ object }) => object.metadata.name);
  assert.deepEqual(names.sort(), ["quick-ca", "quick-learner-tls"]);
});
