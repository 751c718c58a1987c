/** A release: images for several architectures and the chart that names their digests, pushed to a registry and signed. */
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { parseDocument } from "yaml";
import { ensureBinaries } from "../cluster/binaries.ts";
import type { Architecture } from "../e2e/emulation.ts";
import { Builder } from "../e2e/images.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const CHART = join(ROOT, "charts/longrun");
const BOTH: readonly Architecture[] = ["amd64", "arm64"];
/** Each target of the Dockerfile that is an image, with its architectures. */
export const IMAGES = {
  controller: BOTH,
  learner: BOTH,
  actor: BOTH,
  sandbox: BOTH,
  "sandbox-paper": BOTH,
  // onnxruntime-gpu has wheels with CUDA's provider for x86-64 alone.
  "learner-cuda": ["amd64"],
} satisfies Record<string, readonly Architecture[]>;
export type Image = keyof typeof IMAGES;
/** Images that the chart's values name. */
const OF_CHART: readonly Image[] = ["controller", "learner", "actor", "sandbox"];

export interface ReleaseOptions {
  /** HOST/REPOSITORY. A registry on this machine is used without TLS. */
  registry: string;
  /** cosign's private key, decrypted with COSIGN_PASSWORD; without it cosign signs with an identity of OpenID Connect. */
  key?: string | undefined;
  images: readonly Image[];
  architectures: readonly Architecture[];
  /** Bases made of Debian's and npm's packages, where Docker Hub cannot be reached. */
  localBases: boolean;
  /** Whether tags of this version may be replaced. */
  overwrite: boolean;
  log: (line: string) => void;
}

interface Released {
  /** NAME@DIGEST of each image's index. */
  images: Partial<Record<Image, string>>;
  /** NAME@DIGEST; undefined where an image of the chart was not released. */
  chart: string | undefined;
}

/** The chart's version, which is the tag of its images too. */
export const VERSION = String(parseDocument(readFileSync(join(CHART, "Chart.yaml"), "utf8")).get("version"));

/** @throws Error, before anything is built, if the key cannot be used or the registry has the version already */
export async function release(options: ReleaseOptions): Promise<Released> {
  const { registry, key, overwrite, log } = options;
  const { helm, cosign } = await ensureBinaries(["helm", "cosign"], { log });
  if (key) await run(cosign, ["public-key", "--key", key]).catch((cause) => refuseKey(key, cause));
  const insecure = /^(127\.0\.0\.1|localhost)(:|\/)/.test(registry);
  const checkTags = () => (overwrite ? undefined : refuseTaken(cosign, options, insecure));
  await checkTags();
  const builder = new Builder(log);
  const work = mkdtempSync(join(tmpdir(), "longrun-release-"));
  try {
    for (const line of leftOut(options)) log(line);
    const made = await buildAll(builder, options, await labelArguments(VERSION, ROOT), work);
    await checkTags(); // somebody else may have released it meanwhile
    const images: Partial<Record<Image, string>> = {};
    for (const [image, names] of made) {
      const name = `${registry}/longrun/${image}`;
      log(`pushing ${name}:${VERSION} for ${names.length} architectures`);
      images[image] = `${name}@${await pushIndex(builder, `${name}:${VERSION}`, names, join(work, image), insecure)}`;
    }
    let chart: string | undefined;
    const left = OF_CHART.filter((image) => !images[image]);
    if (left.length > 0) log(`no chart, because these images of it were not released: ${left.join(", ")}`);
    else chart = await pushChart(helm, registry, images, work, insecure);
    for (const one of [...Object.values(images), ...(chart ? [chart] : [])]) {
      log(`signing ${one}`);
      // A private key's signatures go into no public log: the names of a registry are its owner's.
      const how = key ? ["--key", key, "--tlog-upload=false"] : [];
      await run(cosign, ["sign", "--yes", "--recursive", ...how, ...(insecure ? ["--allow-http-registry"] : []), one]);
    }
    return { images, chart };
  } finally {
    rmSync(work, { recursive: true });
  }
}

/** Registries' answers if the tag or the repository does not exist yet. */
const FREE = /MANIFEST_UNKNOWN|NAME_UNKNOWN|NOT_FOUND|status code 404/;

/** @throws Error naming the tags that the registry has: a version must stay what it was when it was released */
async function refuseTaken(cosign: string, { registry, images }: ReleaseOptions, insecure: boolean): Promise<void> {
  const names = images.map((image) => `${registry}/longrun/${image}:${VERSION}`);
  if (OF_CHART.every((image) => images.includes(image))) names.push(`${registry}/charts/longrun:${VERSION}`);
  const taken: string[] = [];
  for (const name of names) {
    const ask = ["triangulate", "--type", "digest", ...(insecure ? ["--allow-http-registry"] : []), name];
    const answer = await run(cosign, ask).catch((cause: Error) => cause);
    if (typeof answer === "string") taken.push(name);
    else if (!FREE.test(answer.message))
      throw new Error(
        `cannot tell whether the registry has ${name}: ${lastLine(answer)}; check --registry and \`cosign login\`, or give --overwrite to push without looking`,
        { cause: answer },
      );
  }
  if (taken.length === 0) return;
  const remedy = `raise version in charts/longrun/Chart.yaml, or give --overwrite to replace ${taken.length === 1 ? "it" : "them"}`;
  throw new Error(`the registry has ${taken.join(", ")} already; ${remedy}`);
}

function refuseKey(key: string, cause: Error): never {
  throw new Error(`--key: cosign cannot open ${key} (${lastLine(cause)}); check the file and COSIGN_PASSWORD`, {
    cause,
  });
}

const lastLine = ({ message }: Error): string => message.split("\n").at(-1)!;

/** Returns the build arguments behind the images' labels: the version, and the commit with `-dirty` after uncommitted changes. */
export async function labelArguments(version: string, root: string): Promise<Record<"VERSION" | "REVISION", string>> {
  const git = async (...args: string[]) => (await promisify(execFile)("git", ["-C", root, ...args])).stdout.trim();
  const isDirty = (await git("status", "--porcelain")) !== "";
  return { VERSION: version, REVISION: `${await git("rev-parse", "HEAD")}${isDirty ? "-dirty" : ""}` };
}

/** Returns a line for each image that lacks one of the architectures. */
export function leftOut({ images, architectures }: Pick<ReleaseOptions, "images" | "architectures">): string[] {
  return images.flatMap((image) => {
    const exist: readonly Architecture[] = IMAGES[image];
    const lacking = architectures.filter((one) => !exist.includes(one));
    return lacking.length === 0
      ? []
      : [`no ${image} for ${lacking.join(", ")}: it exists for ${exist.join(", ")} alone`];
  });
}

/** Returns each image with the local names of its architectures. */
async function buildAll(
  builder: Builder,
  { images, architectures, localBases }: ReleaseOptions,
  labels: Record<string, string>,
  work: string,
): Promise<[Image, string[]][]> {
  const args = { ...labels, ...(localBases ? await builder.prepareIndexes(architectures) : {}) };
  // The tasks' data are made once, so that they are the same on every architecture, and no emulator makes them.
  const data = join(work, "tasks");
  if (images.some((image) => image !== "controller" && image !== "actor")) {
    await builder.build("tasks", "localhost/longrun-release/tasks", { args });
    const copies = ["longrun-tasks", "public-tasks"].map(
      (name) => `COPY --from=localhost/longrun-release/tasks /opt/${name} /opt/${name}`,
    );
    mkdirSync(data);
    writeFileSync(join(work, "Dockerfile"), `FROM scratch\n${copies.join("\n")}\n`);
    await builder.buildah(["build", "--output", `type=local,dest=${data}`, "--file", join(work, "Dockerfile"), work]);
  }
  const made: [Image, string[]][] = [];
  for (const image of images) {
    const names: string[] = [];
    for (const architecture of architectures.filter((one) => (IMAGES[image] as readonly string[]).includes(one))) {
      const name = `localhost/longrun-release/${image}:${architecture}`;
      await builder.build(image, name, { architecture, args, more: ["--build-context", `tasks=${data}`] });
      names.push(name);
    }
    if (names.length > 0) made.push([image, names]);
  }
  return made;
}

/** Pushes an index of images. Returns its digest. */
async function pushIndex(builder: Builder, name: string, images: string[], file: string, insecure: boolean) {
  const index = `localhost/longrun-release/${name.split("/").at(-1)}-index`;
  await builder.buildah(["manifest", "rm", index]).catch(() => {}); // of an earlier release
  await builder.buildah(["manifest", "create", index, ...images]);
  const tls = insecure ? ["--tls-verify=false"] : [];
  await builder.buildah([
    "manifest",
    "push",
    "--all",
    "--quiet",
    ...["--format", "oci"],
    ...tls,
    "--digestfile",
    file,
    index,
    `docker://${name}`,
  ]);
  return readFileSync(file, "utf8").trim();
}

/** Pushes the chart with the digests of its images as defaults. Returns its NAME@DIGEST. */
async function pushChart(
  ...[helm, registry, images, work, insecure]: [
    ...[helm: string, registry: string, images: Released["images"], work: string, insecure: boolean],
  ]
): Promise<string> {
  const chart = join(work, "longrun");
  cpSync(CHART, chart, { recursive: true });
  const values = parseDocument(readFileSync(join(chart, "values.yaml"), "utf8"));
  values.setIn(["images", "registry"], registry);
  for (const image of OF_CHART) values.setIn(["images", image, "digest"], images[image]!.split("@")[1]);
  writeFileSync(join(chart, "values.yaml"), values.toString({ lineWidth: 0 }));
  const packed = (await run(helm, ["package", chart, "--destination", work])).trim().split(" ").at(-1)!;
  const plain = insecure ? ["--plain-http"] : [];
  const said = await run(helm, ["push", packed, `oci://${registry}/charts`, ...plain]);
  const digest = /sha256:[0-9a-f]{64}/.exec(said)?.[0];
  if (!digest) throw new Error(`helm push named no digest: ${said}`);
  return `${registry}/charts/longrun@${digest}`;
}

/** Returns both outputs. @throws Error with the last lines of a command that failed */
async function run(file: string, args: string[]): Promise<string> {
  try {
    const { stdout, stderr } = await promisify(execFile)(file, args, { maxBuffer: 64 << 20 });
    return `${stderr}${stdout}`;
  } catch (cause) {
    const { stderr, message } = cause as Error & { stderr?: string };
    throw new Error(`\`${file} ${args[0]}\` failed: ${(stderr || message).trim().split("\n").slice(-5).join("\n")}`, {
      cause,
    });
  }
}
