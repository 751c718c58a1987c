/** The CRD of 0.1.0, from its packaged chart. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { parse } from "yaml";

const CHART = join(import.meta.dirname, "../test/chart/released/longrun-0.1.0.tgz");

/** Returns the CustomResourceDefinition without the chart's template expressions. */
export function releasedCrd() {
  const template = execFileSync("tar", ["-xzOf", CHART, "longrun/templates/trainingruns-crd.yaml"], {
    encoding: "utf8",
  });
  return parse(template.replaceAll(/^\s*\{\{.*\}\}\s*$/gm, "").replaceAll(/\{\{.*?\}\}/g, ""));
}
