/** Finds out whether the images of the tests were already built from the same sources. */
import { createHash } from "node:crypto";
import { existsSync, globSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PREFIX = "built-";

/** Returns the digest of all that images are made from: what .dockerignore names, the Dockerfile, and the code of the build. */
function digestOfSources(): string {
  const lines = readFileSync(join(ROOT, ".dockerignore"), "utf8").split("\n");
  const context = lines.filter((line) => line.startsWith("!")).map((line) => line.slice(1));
  const patterns = [
    "Dockerfile",
    ".dockerignore",
    "test/e2e/images.ts",
    ...context,
    ...context.map((it) => `${it}/**`),
  ];
  const exclude = lines.filter((line) => line.startsWith("**/"));
  const hash = createHash("sha256");
  for (const file of globSync(patterns, { cwd: ROOT, exclude }).sort()) {
    const path = join(ROOT, file);
    const { mode } = statSync(path);
    hash.update(`${file}\0${mode}\0`);
    if (statSync(path).isFile()) hash.update(readFileSync(path));
  }
  return hash.digest("hex");
}

/**
 * Returns the archives that an earlier build of the same sources has left, or builds them. buildah alone would spend half a minute on
 * finding every layer in its cache.
 *
 * @param names the images that are built
 */
export async function unlessBuilt(folder: string, names: string[], build: () => Promise<string[]>): Promise<string[]> {
  const key = createHash("sha256")
    .update(`${digestOfSources()} ${names.join(" ")}`)
    .digest("hex")
    .slice(0, 16);
  const record = join(folder, `${PREFIX}${key}.json`);
  if (existsSync(record)) {
    const archives = JSON.parse(readFileSync(record, "utf8")) as string[];
    if (archives.every((archive) => existsSync(archive))) return archives;
  }
  const archives = await build();
  for (const file of readdirSync(folder)) if (file.startsWith(PREFIX)) rmSync(join(folder, file), { force: true });
  writeFileSync(record, JSON.stringify(archives));
  return archives;
}
