import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Run } from "../desired/names.ts";
import { ApiError } from "../kube/errors.ts";
import { runOf } from "../run.fixture.ts";
import { BlockedError, checkPodTemplate, writeBlocker } from "./refusals.ts";

const RUN = runOf();

describe("a podTemplate that the CRD does not allow", () => {
  const volumes = Array.from({ length: 33 }, (_, index) => ({ name: `v${index}`, emptyDir: {} }));
  const CASES: [part: "learner" | "actors", spec: object, message: RegExp][] = [
    [
      "learner",
      { nodeSelectr: { a: "b" } },
      /^it is refused: spec\.learner\.podTemplate\.spec\.nodeSelectr is unknown; did you mean nodeSelector\?; correct that field/,
    ],
    [
      "actors",
      { hostNetwork: true },
      /^it is refused: spec\.actors\.podTemplate\.spec\.hostNetwork is unknown; remove it \(.*nodeSelector/,
    ],
    ["learner", { containers: [{ name: "learner", env: "x" }] }, /containers\[0\]\.env is "x"; give a list/],
    ["learner", { volumes }, /podTemplate\.spec\.volumes is .*; give a list of 0 to 32 items/],
    [
      "learner",
      { volumes: [{ name: "tls", emptyDir: {} }] },
      /volumes\[0\]\.name does not fit: volumes data, .*; choose another name \(it is "tls"\)/,
    ],
  ];
  for (const [part, spec, message] of CASES)
    test(`A podTemplate of ${part} is refused: ${JSON.stringify(spec).slice(0, 60)}`, () => {
      const podTemplate = { spec };
      const run = { ...RUN, spec: { ...RUN.spec, [part]: { ...RUN.spec[part], podTemplate } } } as Run;
      const check = () => checkPodTemplate(run, part, "it");
      assert.throws(check, (error) => {
        assert.ok(error instanceof BlockedError);
        assert.match(error.message, message);
        return error.reason === "Refused";
      });
      checkPodTemplate(run, part === "learner" ? "actors" : "learner", "it");
    });

  test("No podTemplate, or an allowed one, gives no finding", () => {
    const podTemplate = { spec: { nodeSelector: { a: "b" } } };
    for (const run of [RUN, runOf({ learner: { podTemplate }, actors: { podTemplate } })])
      for (const part of ["learner", "actors"] as const) checkPodTemplate(run, part, "it");
  });
});

test("The error of server-side apply about an unknown field names the field of the run", () => {
  const text =
    "failed to create typed patch object (team/run-learner; apps/v1, Kind=Deployment): .spec.template.spec.nodeSelectr: field not declared in schema";
  const found = writeBlocker(new ApiError(text, { status: 500, reason: "" }), RUN);
  assert.equal(found?.reason, "Refused");
  assert.match(
    found!.message,
    /^Deployment run-learner is refused: spec\.learner\.podTemplate\.spec\.nodeSelectr: field not declared in schema; correct that field/,
  );
});

test("The refusal of a volume names its size and the limit", () => {
  const range = "maximum storage usage per PersistentVolumeClaim is 50Gi, but request is 100Gi";
  const few =
    "exceeded quota: few, requested: requests.storage=100Gi, used: requests.storage=0, limited: requests.storage=50Gi";
  for (const [why, reason] of [
    [range, "Refused"],
    [few, "QuotaExceeded"],
  ] as const) {
    const error = new ApiError(`PATCH …: 403 persistentvolumeclaims "run-data" is forbidden: ${why}`, {
      ...{ status: 403, reason: "Forbidden" },
    });
    const message = (size?: string) => {
      const found = writeBlocker(error, runOf(size === undefined ? {} : { learner: { storage: { size } } }));
      assert.equal(found?.reason, reason);
      assert.ok(found.message.includes(why));
      return found.message;
    };
    assert.match(message(), /in spec\.learner\.storage\.size \(absent: 100Gi/);
    assert.match(message("100Gi"), /in spec\.learner\.storage\.size of a run that you create anew/);
  }
});

describe("writeBlocker", () => {
  const CASES: [status: number, message: string, reason: string | undefined][] = [
    [403, 'pods "x" is forbidden: exceeded quota: few, requested: count/jobs.batch=1', "QuotaExceeded"],
    [403, 'pods "x" is forbidden: maximum cpu usage per Container is 2, but limit is 4', "Refused"],
    [403, "unable to create new content in namespace team because it is being terminated", "Forbidden"],
    [403, 'User "x" cannot create resource "jobs"', "Forbidden"],
    [422, "spec.template: Invalid value", "Refused"],
    [400, 'admission webhook "policy" denied the request', "Refused"],
    [409, "the object has been modified", undefined],
    [429, "slow down", undefined],
    [500, "etcd", undefined],
    [
      500,
      'failed to create typed patch object (team-1/d; apps/v1, Kind=Deployment): .spec.template.spec.containers[name="c"].env: expected list, got &{x}',
      "Refused",
    ],
    [0, "socket hang up", undefined],
  ];
  for (const [status, message, reason] of CASES)
    test(`${status} ${message}: ${reason ?? "try again"}`, () => {
      const error = new ApiError(message, { status, reason: status === 409 ? "Conflict" : "" });
      assert.equal(writeBlocker(error, RUN)?.reason, reason);
    });
});
