import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SPEC_HASH } from "../desired/names.ts";
import { ApiError } from "../kube/errors.ts";
import { JOB, SERVICE } from "../kube/resources.ts";
import type { KubeObject } from "../kube/types.ts";
import { runOf } from "../run.fixture.ts";
import { droppedFields } from "./dropped.ts";
import { type Client, Writes } from "./writes.ts";

describe("droppedFields", () => {
  const CASES: [what: string, desired: object, stored: object, dropped: string[]][] = [
    ["nothing", { a: 1, b: [{ name: "x" }] }, { a: 1, b: [{ name: "x" }] }, []],
    ["a field", { spec: { endPort: 5, port: 1 } }, { spec: { port: 1 } }, ["spec.endPort"]],
    ["a changed value", { a: "1Gi" }, { a: "1024Mi" }, []],
    [
      "an addition in front",
      { list: [{ name: "b", image: "i" }] },
      { list: [{ name: "a" }, { name: "b", image: "i" }] },
      [],
    ],
    ["an item", { volumes: [{ name: "a" }, { name: "b" }] }, { volumes: [{ name: "a" }] }, ["volumes[b]!"]],
    [
      "a volume's source",
      { s: { volumes: [{ name: "a", image: { r: 1 } }] } },
      { s: { volumes: [{ name: "a" }] } },
      ["s.volumes[a].image!"],
    ],
    ["a mount", { m: [{ mountPath: "/x", name: "a" }] }, { m: [] }, ["m[/x]!"]],
    [
      "one of two mounts of a volume",
      {
        m: [
          { mountPath: "/x", name: "a" },
          { mountPath: "/y", name: "a", subPath: "b" },
        ],
      },
      { m: [{ mountPath: "/x", name: "a" }] },
      ["m[/y]!"],
    ],
    [
      "no part of two mounts of a volume",
      {
        m: [
          { mountPath: "/x", name: "a" },
          { mountPath: "/y", name: "a", subPath: "b" },
        ],
      },
      {
        m: [
          { mountPath: "/x", name: "a" },
          { mountPath: "/y", name: "a", subPath: "b" },
        ],
      },
      [],
    ],
    [
      "no part of two tolerations with one key",
      {
        t: [
          { key: "k", operator: "Exists" },
          { key: "k", effect: "NoExecute", tolerationSeconds: 5 },
        ],
      },
      {
        t: [
          { key: "k", operator: "Exists" },
          { key: "k", effect: "NoExecute", tolerationSeconds: 5 },
        ],
      },
      [],
    ],
    [
      "an item without a name",
      { egress: [{ ports: [1] }, { ports: [2] }] },
      { egress: [{ ports: [1] }] },
      ["egress[1]!"],
    ],
    [
      "claims of devices, without which a learner would compute on no GPU",
      { resourceClaims: [{ name: "a" }], containers: [{ name: "c", resources: { claims: [{ name: "a" }] } }] },
      { containers: [{ name: "c", resources: {} }] },
      ["resourceClaims!", "containers[c].resources.claims!"],
    ],
    ["empty fields", { a: {}, b: [], c: false, d: "", e: 0 }, {}, []],
  ];
  for (const [what, desired, stored, paths] of CASES)
    test(what, () =>
      assert.deepEqual(
        droppedFields(desired, stored).map(({ path, isEssential }) => `${path}${isEssential ? "!" : ""}`),
        paths,
      ),
    );
});

/** Returns the writes to an API server that drops these fields of a pod, and the requests that it got. */
function droppingServer(dropped: string[], dryRunFault?: ApiError) {
  const requests: string[] = [];
  const run = runOf();
  const store = async (_: unknown, object: KubeObject, { dryRun = false } = {}) => {
    requests.push(dryRun ? "dry run" : "write");
    if (dryRun && dryRunFault) throw dryRunFault;
    const { spec } = object as KubeObject & { spec: object };
    const kept = Object.entries(spec).filter(([field]) => !dropped.includes(field));
    return {
      ...object,
      metadata: { ...object.metadata, uid: "u", resourceVersion: "1" },
      spec: Object.fromEntries(kept),
    };
  };
  const client = {
    ...{ create: store, apply: store, serverVersion: async () => "1.30.4" },
    get: async ({ kind }: { kind: string }) => (kind === "TrainingRun" ? run : undefined),
  } as unknown as Client;
  const around = { client, cache: { get: () => undefined }, expectations: { add: () => {} } };
  const kept = new Map();
  const writes = () => new Writes(run, { ...around, applied: new Map(), kept } as never);
  return { requests, writes, dropped };
}

const child = (spec: object, hash = "h"): KubeObject =>
  ({
    metadata: { name: "quick-actor-0-0", namespace: "team", annotations: { [SPEC_HASH]: hash }, labels: {} },
    spec,
  }) as KubeObject;

test("A Job whose volume would be dropped is not created", async () => {
  const { requests, writes } = droppingServer(["volumes"]);
  const made = writes().create(JOB, child({ volumes: [{ name: "data" }], parallelism: 1 }));
  await assert.rejects(made, { name: "BlockedError", reason: "FieldDropped", message: /1\.30\.4\).*spec\.volumes:/ });
  assert.deepEqual(requests, ["dry run"]);
});

test("The API server is asked once for each content of a Job, and every time while it drops an essential field", async () => {
  const { requests, writes } = droppingServer([]);
  for (const hash of ["h", "h", "other"]) await writes().create(JOB, child({ parallelism: 1 }, hash));
  assert.deepEqual(requests, ["dry run", "write", "write", "dry run", "write"]);
  const dropping = droppingServer(["volumes"]);
  for (let time = 0; time < 2; time++)
    await assert.rejects(dropping.writes().create(JOB, child({ volumes: [{ name: "data" }] })));
  assert.deepEqual(dropping.requests, ["dry run", "dry run"]);
  dropping.dropped.length = 0; // the feature gate is on now
  await dropping.writes().create(JOB, child({ volumes: [{ name: "data" }] }));
  assert.deepEqual(dropping.requests.slice(2), ["dry run", "write"]);
});

test("A dry run that a webhook does not support does not keep the object from being written, and the answer counts", async () => {
  const fault = new ApiError("admission webhook does not support dry run", { status: 400, reason: "BadRequest" });
  const { requests, writes } = droppingServer(["volumes"], fault);
  await assert.rejects(writes().create(JOB, child({ volumes: [{ name: "data" }] })), { reason: "FieldDropped" });
  assert.deepEqual(requests, ["dry run", "write"]);
});

test("Other dropped fields are reported, and the object is written", async () => {
  const { requests, writes } = droppingServer(["trafficDistribution"]);
  const service = child({ trafficDistribution: "PreferClose", type: "ClusterIP" });
  const written = writes();
  await written.apply(SERVICE, service);
  assert.deepEqual(requests, ["write"]);
  assert.equal(written.fields.dropped()?.reason, "FieldDropped");
  assert.match(
    written.fields.dropped()!.message,
    /Service quick-actor-0-0 spec\.trafficDistribution: it does not know the field/,
  );
});
