import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { missingBinaries, RELEASE } from "../cluster/binaries.ts";
import { OciRegistry } from "../cluster/registry.ts";
import { HOST } from "../e2e/emulation.ts";
import { missingTools } from "../tools.ts";
import { labelArguments, leftOut, VERSION } from "./release.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-release-"));
after(() => rmSync(folder, { recursive: true }));

test("The labels of an image name the commit, and say whether a change was not committed", {
  skip: missingTools(["git"]),
}, async () => {
  const git = (...args: string[]) => execFileSync("git", ["-C", folder, ...args], { encoding: "utf8" }).trim();
  git("init", "--quiet");
  git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--allow-empty", "-m", "a");
  const commit = git("rev-parse", "HEAD");
  assert.deepEqual(await labelArguments("1.2.3", folder), { VERSION: "1.2.3", REVISION: commit });
  writeFileSync(join(folder, "a"), "");
  assert.deepEqual(await labelArguments("1.2.3", folder), { VERSION: "1.2.3", REVISION: `${commit}-dirty` });
  const dockerfile = readFileSync(join(import.meta.dirname, "../../Dockerfile"), "utf8");
  for (const name of ["VERSION", "REVISION"]) assert.match(dockerfile, new RegExp(`^ARG ${name}$`, "m"));
});

test("An image without one of the architectures is named", () => {
  const architectures = ["amd64", "arm64"] as const;
  const lines = leftOut({ images: ["actor", "learner-cuda"], architectures });
  assert.deepEqual(lines, ["no learner-cuda for arm64: it exists for amd64 alone"]);
});

/** Returns what `npm run release` prints to stderr. The first build fails, so that no image is made. */
function refusalOf(registry: string, ...options: string[]): Promise<string> {
  const programs = join(folder, "programs");
  mkdirSync(programs, { recursive: true });
  writeFileSync(join(programs, "buildah"), "#!/bin/sh\necho no build here >&2\nexit 1\n", { mode: 0o755 });
  const args = [join(import.meta.dirname, "main.ts"), "--registry", registry, "--architectures", HOST, ...options];
  const env = { ...process.env, PATH: `${programs}:${process.env.PATH}`, COSIGN_PASSWORD: "of this test" };
  return new Promise((resolve) => execFile(process.execPath, args, { env }, (_, __, stderr) => resolve(stderr)));
}

const skip = missingBinaries(RELEASE) ?? false;

test("a release refuses a version that the registry has, before it builds; --overwrite replaces it", {
  skip,
}, async () => {
  await using registry = await OciRegistry.start();
  const at = `${registry.host}/team`;
  await registry.push("team/longrun/actor", VERSION, { a: "x" });
  await registry.push("team/longrun/learner", "0.0.1", { a: "x" });
  await registry.push("team/charts/longrun", VERSION, { a: "x" });
  const remedy = "raise version in charts/longrun/Chart.yaml, or give --overwrite to replace";
  const [image, chart] = [`${at}/longrun/actor:${VERSION}`, `${at}/charts/longrun:${VERSION}`];
  assert.equal(await refusalOf(at, "--images", "actor,learner"), `the registry has ${image} already; ${remedy} it\n`);
  assert.equal(await refusalOf(at), `the registry has ${image}, ${chart} already; ${remedy} them\n`);
  assert.match(await refusalOf(at, "--images", "learner"), /no build here/);
  assert.match(await refusalOf(at, "--images", "actor", "--overwrite"), /no build here/);
});

test("a release that cannot ask the registry or open its key ends before it builds", { skip }, async () => {
  assert.match(
    await refusalOf("127.0.0.1:1/team", "--images", "actor"),
    /^cannot tell whether the registry has 127\.0\.0\.1:1\/team\/longrun\/actor:[\d.]+: [^\n]*refused; check [^\n]*--overwrite[^\n]*\n$/,
  );
  await using registry = await OciRegistry.start();
  const key = join(folder, "none.key");
  assert.match(
    await refusalOf(`${registry.host}/team`, "--key", key),
    /^--key: cosign cannot open [^\n]*none\.key[^\n]*\n$/,
  );
});
