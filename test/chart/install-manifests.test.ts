/** `manifests/install` has the objects that the chart renders to. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { describe, test } from "node:test";
import type { KubeObject } from "../../controller/operator/kube/types.ts";
import { findBinary, missingBinaries } from "../cluster/binaries.ts";
import { helmUnavailable, isHook, keyOf, OPERATORS, objectsOf, ROOT, template } from "./helm.ts";

describe("manifests/install has the objects that the chart renders", {
  skip: helmUnavailable() ?? missingBinaries(["kubectl"]) ?? false,
}, () => {
  const kustomize = (folder: string) =>
    objectsOf(
      execFileSync(findBinary("kubectl")!, ["kustomize", resolve(ROOT, folder)], {
        encoding: "utf8",
        maxBuffer: 64 << 20,
      }),
    );

  test("The kustomization for all namespaces equals the chart with its defaults", async () => {
    const namespace = ({ kind }: KubeObject) => kind === "Namespace"; // helm's --create-namespace makes it
    const manifests = kustomize("manifests/install").filter((object) => !namespace(object));
    assert.deepEqual(comparable(objectsOf(await template())), comparable(manifests));
  });

  test("The kustomization for one namespace equals the chart with watch.scope namespaces", async () => {
    const sets = ["--set", "watch.scope=namespaces", "--set", "rbac.aggregateToUsers=false", "--namespace", "longrun"];
    const text = JSON.stringify(kustomize("manifests/install/namespaced")).replaceAll("$(NAMESPACE)", "longrun");
    const manifests = JSON.parse(text) as KubeObject[];
    for (const { spec } of manifests as never as {
      spec?: { template?: { spec: { containers: { env: { name: string }[] }[] } } };
    }[])
      for (const container of spec?.template?.spec.containers ?? [])
        container.env = container.env.filter(({ name }) => name !== "NAMESPACE"); // the chart sets it
    assert.deepEqual(comparable(objectsOf(await template(sets))), comparable(manifests));
  });

  test("The Kueue component gives the same controller, and the same rights in all", async () => {
    const overlay = mkdtempSync(join(tmpdir(), "longrun-overlay-"));
    try {
      const install = join(relative(overlay, ROOT), "manifests/install");
      const parts = { resources: [install], components: [join(install, "kueue")] };
      writeFileSync(join(overlay, "kustomization.yaml"), JSON.stringify(parts));
      const manifests = kustomize(overlay);
      const ofChart = objectsOf(await template(["--set", "kueue.enabled=true", ...OPERATORS]));
      const controller = (of: KubeObject[]) => comparable(of.filter(({ kind }) => kind === "Deployment"));
      assert.deepEqual(controller(ofChart), controller(manifests));
      const rights = (of: KubeObject[]) => {
        const roles = of.filter(({ kind, metadata }) => kind === "ClusterRole" && metadata.name.includes("controller"));
        return roles
          .flatMap((role) => (role as never as { rules: object[] }).rules.map((it) => JSON.stringify(it)))
          .sort();
      };
      assert.deepEqual(rights(ofChart), rights(manifests));
      const bound = manifests.filter(
        ({ kind, metadata }) => kind === "ClusterRoleBinding" && /kueue/.test(metadata.name),
      );
      for (const binding of bound as never as { subjects: { namespace: string }[] }[])
        assert.equal(binding.subjects[0]!.namespace, "longrun-system");
      assert.equal(bound.length, 2);
    } finally {
      rmSync(overlay, { recursive: true });
    }
  });

  /** Returns objects by kind and name, without fields that Helm needs and kustomize lacks. */
  function comparable(of: KubeObject[]): Record<string, unknown> {
    const helms = /^(helm\.sh\/.*|app\.kubernetes\.io\/(instance|version|managed-by))$/;
    const clean = (value: unknown, key = ""): unknown => {
      if (Array.isArray(value)) return value.map((item) => clean(item));
      if (value === null || typeof value !== "object") return value;
      const isLabels = ["labels", "matchLabels", "annotations"].includes(key);
      const entries = Object.entries(value)
        .filter(([name]) => !(isLabels && helms.test(name)))
        .map(([name, part]) => [name, clean(part, name)] as const)
        .filter(
          ([name, part]) => !(["labels", "annotations"].includes(name) && Object.keys(part as object).length === 0),
        );
      return Object.fromEntries(entries);
    };
    return Object.fromEntries(
      of
        .filter((object) => !isHook(object))
        .map((object) => [
          keyOf(object),
          clean(
            object.kind === "CustomResourceDefinition"
              ? { spec: (object as KubeObject & { spec?: unknown }).spec }
              : object,
          ),
        ])
        .sort(),
    );
  }
});
