/**
 * Builds the project's images from its Dockerfile, and a node's other images, without a registry or a Docker engine.
 *
 *     node test/e2e/images.ts [TARGET...]     prints the archives, which `docker load` and `ctr images import` accept
 *
 * Without a target it builds those that the tests need; learner-cuda and sandbox-paper, gigabytes each, only by name.
 *
 * buildah reads the Dockerfile. Base images of Docker Hub are replaced by equal ones: Debian by debootstrap, Node from the npm package that
 * the lock file pins. Everything is kept in longrun's cache folder, about 4 GB. The first build takes 5 to 10 minutes; a build after a
 * change of sources takes a fraction of that.
 */
import { execFile } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheRoot } from "../../actor/python-env.ts";
import { PAUSE_IMAGE } from "../cluster/node-config.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SUITE = "bookworm";
const MIRROR = "http://deb.debian.org/debian";
const NPM_VERSION = "11.6.2";
const DEBIAN = "localhost/longrun-test/debian:1";
const NODE = "localhost/longrun-test/node:1";
/** Targets of the Dockerfile, with their names in manifests/README.md and manifests/install. No registry has them, but the node does. */
export const TARGETS = {
  controller: "registry.example.com/ml/longrun/controller:0.2.0",
  learner: "registry.example.com/ml/longrun/learner:0.2.0",
  actor: "registry.example.com/ml/longrun/actor:0.2.0",
  sandbox: "registry.example.com/ml/longrun/sandbox:0.2.0",
};
const NAMED_ALONE = {
  "learner-cuda": "registry.example.com/ml/longrun/learner-cuda:0.2.0",
  "sandbox-paper": "registry.example.com/ml/longrun/sandbox-paper:0.2.0",
};
/** Programs; Debian's packages have the same names. */
export const PROGRAMS = ["buildah", "debootstrap"];

type Log = (line: string) => void;

/** @returns the archives of all images. @throws Error with the last lines of the failed step */
export async function buildImages(log: Log = () => {}, targets: Record<string, string> = TARGETS): Promise<string[]> {
  const builder = new Builder(join(cacheRoot(), "cluster", "images"), log);
  await builder.prepareBases();
  for (const [target, name] of Object.entries(targets)) await builder.build(target, name);
  return Promise.all([PAUSE_IMAGE, ...Object.values(targets)].map((name) => builder.archive(name)));
}

class Builder {
  readonly #folder: string;
  readonly #log: Log;

  constructor(folder: string, log: Log) {
    this.#folder = folder;
    this.#log = log;
    mkdirSync(folder, { recursive: true });
    const storage = `[storage]\ndriver = "overlay"\ngraphroot = "${folder}/storage"\nrunroot = "${folder}/run"\n`;
    writeFileSync(join(folder, "storage.conf"), storage);
  }

  /** Makes a minimal Debian, the same with Node and npm, and a container that waits for ever. */
  async prepareBases(): Promise<void> {
    await this.#baseImage(DEBIAN, "ADD debian.tar /", async (context) => {
      await this.#run("debootstrap", ["--variant=minbase", SUITE, `${context}/debian`, MIRROR]);
      await this.#run("tar", ["-C", `${context}/debian`, "-cf", `${context}/debian.tar`, "."]);
    });
    const npm = "COPY package /usr/local/lib/node_modules/npm\n";
    const link = "RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm";
    await this.#baseImage(NODE, `COPY node /usr/local/bin/node\n${npm}${link}`, async (context) => {
      copyFileSync(join(ROOT, "node_modules/.bin/node"), `${context}/node`);
      await this.#run("npm", ["pack", "--silent", "--pack-destination", context, `npm@${NPM_VERSION}`]);
      await this.#run("tar", ["-C", context, "-xzf", `${context}/npm-${NPM_VERSION}.tgz`]);
    });
    await this.#baseImage(local(PAUSE_IMAGE), 'CMD ["sleep", "infinity"]', async () => {});
  }

  /** Makes an image once: FROM the Debian base, or from nothing if it is that base. */
  async #baseImage(name: string, steps: string, prepare: (context: string) => Promise<void>): Promise<void> {
    if (await this.#id(name)) return;
    this.#log(`making ${name}`);
    const context = join(this.#folder, "context");
    rmSync(context, { recursive: true, force: true });
    mkdirSync(context);
    await prepare(context);
    writeFileSync(`${context}/Dockerfile`, `FROM ${name === DEBIAN ? "scratch" : DEBIAN}\n${steps}\n`);
    await this.#buildah(["build", "--isolation", "chroot", "--timestamp", "0", "--tag", name, context]);
    rmSync(context, { recursive: true, force: true });
  }

  async build(target: string, name: string): Promise<void> {
    this.#log(`building ${name}`);
    const debian = { DEBIAN_IMAGE: DEBIAN, DEBIAN_NAME: DEBIAN, DEBIAN_DIGEST: "" }; // it has no digest, because no registry provided it
    const bases = { ...debian, NODE_IMAGE: NODE, DEBIAN_SNAPSHOT: "" };
    await this.#buildah([
      ...["build", "--isolation", "chroot", "--layers", "--timestamp", "0", "--target", target, "--tag", local(name)],
      ...Object.entries(bases).flatMap(([argument, value]) => ["--build-arg", `${argument}=${value}`]),
      ...(await this.#registryVolumes()),
      ROOT,
    ]);
  }

  /** Returns a docker archive, made again if the image has changed. */
  async archive(name: string): Promise<string> {
    const id = await this.#id(local(name));
    const short = name.split("/").slice(1).join("-").replace(":", "-");
    const path = join(this.#folder, `${short}-${id.slice(0, 16)}.tar`);
    if (existsSync(path)) return path;
    for (const file of readdirSync(this.#folder))
      if (file.startsWith(`${short}-`)) rmSync(join(this.#folder, file), { force: true });
    await this.#buildah(["push", "--quiet", "--disable-compression", local(name), `docker-archive:${path}:${name}`]);
    return path;
  }

  /** Returns volumes for npm and pip to reach their registries on this machine; images only get empty mount points. */
  async #registryVolumes(): Promise<string[]> {
    const settings = join(this.#folder, "registries");
    mkdirSync(settings, { recursive: true });
    const authorities = process.env.NODE_EXTRA_CA_CERTS ?? "/etc/ssl/certs/ca-certificates.crt";
    const inBuild = "/etc/longrun-build-ca.crt";
    const trusted = existsSync(authorities);
    const registry = (await this.#run("npm", ["config", "get", "registry"])).trim();
    writeFileSync(`${settings}/npmrc`, `registry=${registry}\n${trusted ? `cafile=${inBuild}\n` : ""}`);
    const index = process.env.PIP_INDEX_URL ? `index-url = ${process.env.PIP_INDEX_URL}\n` : "";
    writeFileSync(`${settings}/pip.conf`, `[global]\n${index}${trusted ? `cert = ${inBuild}\n` : ""}`);
    const volumes = [`${settings}/npmrc:/root/.npmrc:ro`, `${settings}/pip.conf:/etc/pip.conf:ro`];
    if (trusted) volumes.push(`${authorities}:${inBuild}:ro`);
    return volumes.flatMap((volume) => ["--volume", volume]);
  }

  /** Returns an empty text if there is no such image. */
  async #id(name: string): Promise<string> {
    return this.#buildah(["images", "--quiet", "--no-trunc", name]).then(
      (id) => id.trim().replace(/^sha256:/, ""),
      () => "",
    );
  }

  #buildah(args: string[]): Promise<string> {
    return this.#run("buildah", args);
  }

  async #run(command: string, args: string[]): Promise<string> {
    const env = { ...process.env, CONTAINERS_STORAGE_CONF: join(this.#folder, "storage.conf") };
    try {
      return (await promisify(execFile)(command, args, { env, cwd: ROOT, maxBuffer: 256 << 20 })).stdout;
    } catch (cause) {
      const { stderr, stdout, message } = cause as Error & { stderr?: string; stdout?: string };
      const last = `${stdout ?? ""}\n${stderr || message}`.trim().split("\n").slice(-12).join("\n");
      throw new Error(`\`${command} ${args.slice(0, 2).join(" ")}\` failed:\n${last}`, { cause });
    }
  }
}

/** Returns buildah's name of an image without a registry. */
const local = (name: string) => name.replace(/^docker\.io\//, "localhost/");

if (import.meta.main) {
  const known = Object.entries({ ...TARGETS, ...NAMED_ALONE });
  const wanted = process.argv.slice(2);
  const unknown = wanted.filter((target) => !known.some(([name]) => name === target));
  if (unknown.length > 0) {
    process.stderr.write(`there is no ${unknown.join(", ")}; there are ${known.map(([name]) => name).join(", ")}\n`);
    process.exit(2);
  }
  const targets = wanted.length > 0 ? Object.fromEntries(known.filter(([name]) => wanted.includes(name))) : TARGETS;
  const archives = await buildImages((line) => process.stderr.write(`${line}\n`), targets);
  process.stdout.write(`${archives.join("\n")}\n`);
}
