/** `Chart.yaml` names versions, and every change that users notice. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { CHART, helm, helmUnavailable, objectsOf, RELEASED, ROOT, template } from "./helm.ts";

const skip = helmUnavailable() ?? false;

test("Chart.yaml has the version of package.json, and names no image", () => {
  const chart = parse(readFileSync(join(CHART, "Chart.yaml"), "utf8"));
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  assert.deepEqual([chart.version, chart.appVersion], [version, version]);
  assert.equal(chart.annotations["artifacthub.io/images"], undefined);
  const crds = parse(chart.annotations["artifacthub.io/crds"]) as { kind: string; name?: string }[];
  assert.deepEqual(
    crds.map(({ kind, name }) => `${kind} ${name}`),
    ["TrainingRun trainingruns.longrun.dev", "TrainingRuntime trainingruntimes.longrun.dev"],
  );
});

test("Chart.yaml's changes name every new value, and every new field of the spec", {
  skip,
}, async () => {
  const pathsOf = (value: unknown, path: string): string[] =>
    value !== null && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length > 0
      ? Object.entries(value).flatMap(([key, part]) => pathsOf(part, path ? `${path}.${key}` : key))
      : [path];
  const valuesOf = async (chart: string) => pathsOf(parse(await helm(["show", "values", chart])), "");
  const fieldsOf = async (chart: string) => {
    const crd = objectsOf(await template([], chart)).find(
      ({ kind }) => kind === "CustomResourceDefinition",
    ) as never as {
      spec: { versions: { schema: { openAPIV3Schema: { properties: { spec: { properties: object } } } } }[] };
    };
    const { properties } = crd.spec.versions[0]!.schema.openAPIV3Schema.properties.spec;
    return Object.keys(properties).map((field) => `spec.${field}`);
  };
  const { annotations } = parse(await helm(["show", "chart", CHART]));
  const told = (parse(annotations["artifacthub.io/changes"]) as { description: string }[])
    .map(({ description }) => description)
    .join("; ");
  for (const namesOf of [valuesOf, fieldsOf]) {
    const [now, before] = await Promise.all([namesOf(CHART), namesOf(RELEASED)]);
    const untold = now.filter((name) => !before.includes(name) && !told.includes(name));
    assert.deepEqual(untold, []);
  }
});
