import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { labelArguments, leftOut } from "./release.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-release-"));
after(() => rmSync(folder, { recursive: true }));

test("The labels of an image name the commit, and say whether a change was not committed", async () => {
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
