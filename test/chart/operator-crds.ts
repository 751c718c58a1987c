/**
 * CustomResourceDefinitions of other operators whose objects longrun makes, from their repositories.
 *
 *     node test/chart/operator-crds.ts [NAME=REPOSITORY …]      makes fixtures/crds anew, with git
 *
 * A repository is on GitHub, or a folder with a copy. One version of each CRD is kept, without descriptions; the rest, including CEL rules,
 * is unchanged. All three are under the Apache License 2.0.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { withoutDescriptions } from "./kubernetes-schemas.ts";

interface Source {
  repository: string;
  tag: string;
  folder: string;
  /** Version of the API. */
  served: string;
  /** File names without extension. */
  files: string[];
}

const SOURCES: Source[] = [
  {
    repository: "https://github.com/kubernetes-sigs/kueue",
    tag: "v0.19.2",
    folder: "config/components/crd/bases",
    served: "v1beta2",
    files: ["workloads", "workloadpriorityclasses", "localqueues", "clusterqueues", "resourceflavors"].map(
      (it) => `kueue.x-k8s.io_${it}`,
    ),
  },
  {
    repository: "https://github.com/kedacore/keda",
    tag: "v2.20.2",
    folder: "config/crd/bases",
    served: "v1alpha1",
    files: ["keda.sh_scaledobjects"],
  },
  {
    repository: "https://github.com/prometheus-operator/prometheus-operator",
    tag: "v0.93.0",
    folder: "example/prometheus-operator-crd",
    served: "v1",
    files: ["servicemonitors", "podmonitors", "prometheusrules"].map((it) => `monitoring.coreos.com_${it}`),
  },
];

const FOLDER = fileURLToPath(new URL("fixtures/crds", import.meta.url));

/** Returns the files of an API group's CRDs, for `startControlPlane`. */
export function operatorCrds(group: string): string[] {
  const files = SOURCES.flatMap((source) => source.files).filter((file) => file.startsWith(`${group}_`));
  if (files.length === 0) throw new Error(`there is no CRD of ${group} in ${FOLDER}`);
  return files.map((file) => join(FOLDER, `${file}.json`));
}

interface Crd {
  metadata: { name: string; annotations?: Record<string, string> };
  spec: { versions: { name: string; storage: boolean; served: boolean }[]; conversion?: unknown };
}

function reduce(crd: Crd, served: string): unknown {
  const version = crd.spec.versions.find(({ name }) => name === served);
  if (!version) throw new Error(`${crd.metadata.name} has no version ${served}`);
  const { conversion: _, ...spec } = crd.spec;
  const versions = [{ ...version, storage: true, served: true }];
  return withoutDescriptions({ ...crd, spec: { ...spec, versions } });
}

if (import.meta.main) {
  const copies = new Map(process.argv.slice(2).map((it) => it.split("=") as [string, string]));
  const work = mkdtempSync(join(tmpdir(), "longrun-crds-"));
  mkdirSync(FOLDER, { recursive: true });
  try {
    for (const { repository, tag, folder, served, files } of SOURCES) {
      const name = basename(repository);
      const git = (...args: string[]) =>
        execFileSync("git", args, { cwd: work, encoding: "utf8", maxBuffer: 64 << 20 });
      const copy = copies.get(name);
      // Clones without files; git fetches the files that are shown.
      if (!copy)
        git("clone", "--quiet", "--no-checkout", "--filter=blob:none", "--depth=1", `--branch=${tag}`, repository);
      for (const file of files) {
        const crd = parse(git("-C", copy ?? name, "show", `${tag}:${folder}/${file}.yaml`)) as Crd;
        writeFileSync(join(FOLDER, `${file}.json`), `${JSON.stringify(reduce(crd, served))}\n`);
      }
      process.stdout.write(`${name} ${tag}: ${files.join(", ")}\n`);
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
