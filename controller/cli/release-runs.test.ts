import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CLAIM } from "../operator/claims/claims.ts";
import { ApiError } from "../operator/kube/errors.ts";
import { FINALIZER } from "../operator/parts/lifecycle/deletion.ts";
import { releaseRuns } from "./release-runs.ts";

type Stored = {
  metadata: { namespace: string; name: string; uid: string; resourceVersion: string; finalizers?: string[] } & {
    annotations?: Record<string, string>;
  };
};

type Patch = { finalizers?: string[]; annotations?: Record<string, null> };

const stored = (namespace: string, name: string, finalizers?: string[]): Stored => ({
  metadata: { namespace, name, uid: `uid-${name}`, resourceVersion: "1", ...(finalizers && { finalizers }) },
});

/** Returns an API server with one run per page. @param onPatch may throw */
function server(runs: Stored[], onPatch: (name: string) => void = () => {}) {
  const patches: object[] = [];
  return {
    patches,
    client: {
      async list(_: unknown, { namespace, continue: from = "0" }: { namespace?: string; continue?: string }) {
        const mine = runs.filter((run) => namespace === undefined || run.metadata.namespace === namespace);
        const next = Number(from) + 1;
        return {
          items: mine.slice(next - 1, next),
          metadata: { ...(next < mine.length && { continue: String(next) }) },
        };
      },
      async mergePatch(_: unknown, { name }: { name: string }, patch: { metadata: Patch }) {
        patches.push(patch);
        onPatch(name);
        const { metadata } = runs.find((run) => run.metadata.name === name)!;
        if (patch.metadata.finalizers) metadata.finalizers = patch.metadata.finalizers;
        if (patch.metadata.annotations) delete metadata.annotations![CLAIM];
      },
    } as never,
  };
}

const release = (client: never, namespaces: string[] = [], said: string[] = [], controller?: string) =>
  releaseRuns({
    client,
    ...{ namespaces, controller },
    quietSeconds: 0.05,
    say: (line) => said.push(line),
    signal: new AbortController().signal,
  });

describe("releaseRuns", () => {
  test("It leaves the runs of other controllers alone", async () => {
    const runs = ["mine", "other", "nobody"].map((name) => stored("a", name, [FINALIZER]));
    for (const [index, name] of ["mine", "other"].entries())
      runs[index]!.metadata.annotations = { [CLAIM]: `${name}/longrun-controller` };
    const { client } = server(runs);
    assert.equal(await release(client, [], [], "mine/longrun-controller"), 0);
    assert.deepEqual(
      runs.map(({ metadata }) => metadata.finalizers),
      [[], [FINALIZER], []],
    );
  });

  test("It ends the claims of the controller that is gone: its successor may not be allowed to read the Lease", async () => {
    const runs = [stored("a", "mine", [FINALIZER]), stored("a", "over"), stored("a", "other"), stored("a", "nobody")];
    for (const [index, name] of ["mine", "mine", "other"].entries())
      runs[index]!.metadata.annotations = { [CLAIM]: `${name}/longrun-controller` };
    const { client, patches } = server(runs);
    assert.equal(await release(client, [], [], "mine/longrun-controller"), 0);
    assert.deepEqual(
      runs.map(({ metadata }) => metadata.annotations?.[CLAIM]),
      [undefined, undefined, "other/longrun-controller", undefined],
    );
    assert.equal(patches.length, 2);
    await release(client);
    assert.equal(patches.length, 2, "without a name it writes runs with the finalizer alone");
  });

  const forbidden = (what: string) => new ApiError(`403 cannot ${what}`, { status: 403, reason: "Forbidden" });

  test("A namespace and a run that the API server refuses keep no other from being released", async () => {
    const runs = [stored("b", "two", [FINALIZER]), stored("c", "three", [FINALIZER])];
    const { client } = server(runs, (name) => {
      if (name === "two") throw forbidden("patch");
    });
    const { list } = client as { list: (resource: unknown, options: { namespace?: string }) => Promise<object> };
    const refusing = async (resource: unknown, options: { namespace?: string }) => {
      if (options.namespace === "a") throw forbidden("list");
      return list(resource, options);
    };
    const said: string[] = [];
    assert.equal(await release({ ...(client as object), list: refusing } as never, ["a", "b", "c"], said), 1);
    assert.deepEqual(said, [
      "namespace a is refused: 403 cannot list",
      "TrainingRun b/two is refused: 403 cannot patch",
      "TrainingRun c/three is released",
    ]);
    await assert.rejects(
      release({
        ...(client as object),
        list: async () => {
          throw forbidden("list");
        },
      } as never),
    );
  });

  test("It removes longrun's finalizer, keeps others, and writes no run that has none", async () => {
    const runs = [stored("a", "one", ["other", FINALIZER]), stored("b", "two", [FINALIZER]), stored("b", "three")];
    const { client, patches } = server(runs);
    const said: string[] = [];
    assert.equal(await release(client, [], said), 0);
    assert.deepEqual(
      runs.map(({ metadata }) => metadata.finalizers),
      [["other"], [], undefined],
    );
    assert.deepEqual(patches[0], { metadata: { uid: "uid-one", resourceVersion: "1", finalizers: ["other"] } });
    assert.deepEqual(said, ["TrainingRun a/one is released", "TrainingRun b/two is released"]);
  });

  test("It works in the given namespaces only", async () => {
    const runs = [stored("a", "one", [FINALIZER]), stored("b", "two", [FINALIZER])];
    await release(server(runs).client, ["b"]);
    assert.deepEqual(
      runs.map(({ metadata }) => metadata.finalizers),
      [[FINALIZER], []],
    );
  });

  test("It reads an object that changed meanwhile again", async () => {
    const runs = [stored("a", "one", [FINALIZER])];
    let conflicts = 2;
    const { client, patches } = server(runs, () => {
      if (conflicts-- > 0) throw new ApiError("PATCH: 409", { status: 409, reason: "Conflict" });
    });
    await release(client);
    assert.deepEqual([patches.length, runs[0]!.metadata.finalizers], [3, []]);
  });

  test("It does nothing without the CRD, and throws any other refusal", async () => {
    const refuses = (status: number) =>
      ({
        list: async () => {
          throw new ApiError(`GET: ${status}`, { status, reason: "" });
        },
      }) as never;
    assert.equal(await release(refuses(404)), 0);
    await assert.rejects(release(refuses(403)), { status: 403 });
  });
});
