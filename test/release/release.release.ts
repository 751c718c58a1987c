/**
 * `npm run test:release`: a release to a registry on this machine, pulled back: both architectures, their programs, the chart's digests,
 * the signatures. `LONGRUN_RELEASE_IMAGES=actor,controller` tries fewer images, and then no chart; `LONGRUN_RELEASE_ARCHITECTURES=amd64` no
 * emulator.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import { parseAllDocuments } from "yaml";
import { findBinary, missingBinaries, RELEASE } from "../cluster/binaries.ts";
import { OciRegistry } from "../cluster/registry.ts";
import { LANES, releaseArchitectures } from "../lane-tools.ts";
import type { Image } from "./release.ts";

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));
const images = (process.env.LONGRUN_RELEASE_IMAGES ?? "controller,learner,actor,sandbox").split(",") as Image[];
const architectures = releaseArchitectures();
/** ELF's e_machine (https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html), by architecture. */
const MACHINES: Record<string, number> = { amd64: 62, arm64: 183 };
const skip = LANES["test:release"].unavailable() ?? missingBinaries(RELEASE) ?? false;

interface Manifest {
  mediaType?: string;
  manifests?: { digest: string; platform: { architecture: string } }[];
  layers?: { digest: string; mediaType: string }[];
  config?: { digest: string };
}

describe("a release", { skip }, () => {
  let registry: OciRegistry;
  let folder: string;
  let repository: string;
  let made: Record<string, string>;
  let options: string[];

  const run = (file: string, args: string[]) =>
    promisify(execFile)(file, args, {
      cwd: folder,
      env: { ...process.env, COSIGN_PASSWORD: "of this test" },
      maxBuffer: 64 << 20,
    });
  const verify = (name: string) =>
    run(findBinary("cosign")!, [
      ...["verify", "--key", "cosign.pub", "--private-infrastructure", "--allow-http-registry", name],
    ]);
  /** Returns a blob or a manifest by NAME@DIGEST, a manifest also by NAME@TAG. */
  const get = async (name: string, kind: "manifests" | "blobs") => {
    const [at, digest] = name.split("@") as [string, string];
    const path = at.slice(registry.host.length + 1);
    const accept = ["index", "manifest"].map((it) => `application/vnd.oci.image.${it}.v1+json`).join(", ");
    const answer = await fetch(`http://${registry.host}/v2/${path}/${kind}/${digest}`, { headers: { accept } });
    assert.equal(answer.status, 200, `${name}: ${answer.status}`);
    return Buffer.from(await answer.arrayBuffer());
  };
  const put = async (at: string, tag: string, body: Buffer, kind: string) => {
    const url = `http://${registry.host}/v2/${at.slice(registry.host.length + 1)}/manifests/${tag}`;
    const headers = { "content-type": `application/vnd.oci.image.${kind}.v1+json` };
    assert.equal((await fetch(url, { method: "PUT", body: new Uint8Array(body), headers })).status, 201, url);
  };
  const manifest = async (name: string) => JSON.parse((await get(name, "manifests")).toString()) as Manifest;

  before(async () => {
    registry = await OciRegistry.start();
    folder = mkdtempSync(join(tmpdir(), "longrun-release-test-"));
    repository = `${registry.host}/team`;
    await run(findBinary("cosign")!, ["generate-key-pair"]);
    options = ["--registry", repository, "--key", "cosign.key", "--local-bases"];
    options.push("--images", images.join(","), "--architectures", architectures.join(","));
    const { stdout } = await run(process.execPath, [MAIN, ...options]);
    const names = stdout.trim().split("\n");
    made = Object.fromEntries(names.map((name) => [name.split("@")[0]!.split("/").slice(2).join("/"), name]));
  });

  after(async () => {
    await registry?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  for (const image of images)
    test(`${image} has its architectures and their programs`, async () => {
      const name = made[`longrun/${image}`]!;
      const at = name.split("@")[0];
      const { manifests, mediaType } = await manifest(name);
      assert.equal(mediaType, "application/vnd.oci.image.index.v1+json");
      assert.deepEqual(manifests!.map(({ platform }) => platform.architecture).sort(), architectures);
      for (const { digest, platform } of manifests!) {
        const { layers } = await manifest(`${at}@${digest}`);
        const machines = new Map<string, number>();
        for (const layer of layers!)
          for (const [path, e_machine] of programsOf(gunzipSync(await get(`${at}@${layer.digest}`, "blobs"))))
            machines.set(path, e_machine);
        assert.ok(machines.size > 50, `${image} has ${machines.size} programs and libraries`);
        const expected = image === "sandbox" ? "usr/bin/python3.11" : "usr/local/bin/node";
        assert.ok(machines.has(expected), `${image} lacks ${expected}`);
        const wrong = [...machines].filter(([, e_machine]) => e_machine !== MACHINES[platform.architecture]);
        assert.deepEqual(wrong, [], `${image} for ${platform.architecture}`);
      }
    });

  test("The chart installs the images by their digests", { skip: images.length < 4 }, async () => {
    const [at, digest] = made["charts/longrun"]!.split("@");
    const helm = findBinary("helm")!;
    const template = ["template", "longrun", `oci://${at}`, "--plain-http", "--kube-version", "1.34"];
    const { stdout, stderr } = await run(helm, template);
    assert.match(stderr, new RegExp(digest!));
    const used = new Set(stdout.match(new RegExp(`${repository}/longrun/[^"\\s,]+`, "g")));
    assert.deepEqual([...used].sort(), images.map((image) => made[`longrun/${image}`]).sort());
    assert.ok(parseAllDocuments(stdout).length > 10);
  });

  test("the same version is not released a second time", async () => {
    await assert.rejects(run(process.execPath, [MAIN, ...options]), {
      code: 1,
      stderr: /^the registry has .* already; /,
    });
  });

  test("cosign accepts the release's signatures, and refuses changed images and other keys", async () => {
    for (const name of Object.values(made)) await verify(name);
    const [name] = Object.values(made);
    const [at] = name!.split("@");
    for (const { digest: one } of (await manifest(name!)).manifests!) await verify(`${at}@${one}`);

    // One byte more, and the same images in it.
    const changed = Buffer.concat([await get(name!, "manifests"), Buffer.from(" ")]);
    const other = `${at}@sha256:${createHash("sha256").update(changed).digest("hex")}`;
    await put(at!, "changed", changed, "index");
    await assert.rejects(verify(other), /no signatures found/);
    const tag = (of: string) => `${of.split("@")[1]!.replace(":", "-")}.sig`;
    await put(at!, tag(other), await get(`${at}@${tag(name!)}`, "manifests"), "manifest");
    await assert.rejects(verify(other), /no matching signatures/);

    await run(findBinary("cosign")!, ["generate-key-pair", "--output-key-prefix", "other"]);
    writeFileSync(join(folder, "cosign.pub"), (await run("cat", ["other.pub"])).stdout);
    await assert.rejects(verify(name!), /no matching signatures/);
  });
});

/** Yields the ELF files of a tar, by their paths, with e_machine. */
function* programsOf(tar: Buffer): Generator<[path: string, e_machine: number]> {
  let long: string | undefined;
  for (let at = 0; at + 512 <= tar.length && tar[at] !== 0; ) {
    const text = (from: number, length: number) =>
      tar.toString("utf8", at + from, at + from + length).replace(/\0.*/s, "");
    const size = Number.parseInt(text(124, 12), 8);
    const body = tar.subarray(at + 512, at + 512 + size);
    const type = text(156, 1);
    if (type === "x") long = /\d+ path=(.*)\n/.exec(body.toString())?.[1];
    else {
      const path = (long ?? [text(345, 155), text(0, 100)].filter(Boolean).join("/")).replace(/^\.?\//, "");
      if (size > 20 && body.readUInt32BE(0) === 0x7f454c46) yield [path, body.readUInt16LE(18)];
      long = undefined;
    }
    at += 512 + 512 * Math.ceil(size / 512);
  }
}
