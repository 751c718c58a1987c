/**
 * Generates longrun.generated.{js,d.ts} from longrun.proto with protobufjs' static target.
 *
 *     node proto/generate.ts           writes both files
 *     node proto/generate.ts --check   writes nothing, exits 1 if a file is outdated
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = import.meta.dirname;
const BANNER = "// Generated from longrun.proto by proto/generate.ts. Do not edit.\n";

/** Leaves out what grpc-js does not use. */
const OPTIONS = [
  ...["--target", "static-module", "--wrap", "esm", "--force-number"],
  ...["--no-service", "--no-verify", "--no-convert", "--no-delimited", "--no-typeurl"],
];

/**
 * `--force-number` makes 64-bit fields numbers in the declarations only: if the package `long` is installed, decoding still returns Long
 * objects. No value here comes near 2^53, so this makes decoding return numbers, too.
 */
function numbersFor64Bits(code: string): string {
  return code
    .replaceAll("$util.Long ? $util.Long.fromBits(0,0,true) : 0", "0")
    .replaceAll(
      'typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0',
      "(value = Number(reader.uint64())) !== 0",
    );
}

function pbjs(...args: string[]): void {
  const cli = fileURLToPath(import.meta.resolve("protobufjs-cli/bin/pbjs"));
  execFileSync(process.execPath, [cli, ...OPTIONS, ...args, join(here, "longrun.proto")], { stdio: "inherit" });
}

/** @returns {file name: text} */
export function generate(): Map<string, string> {
  const scratch = mkdtempSync(join(tmpdir(), "longrun-proto-"));
  try {
    // Generated twice, because the declarations need comments and the committed JavaScript does not.
    pbjs("--dts", "--out", join(scratch, "commented.js"));
    pbjs("--no-comments", "--out", join(scratch, "plain.js"));
    const code = numbersFor64Bits(readFileSync(join(scratch, "plain.js"), "utf8"));
    if (/Long|reader\.(int64|sint64|fixed64|sfixed64)/.test(code))
      throw new Error("a 64-bit field that numbersFor64Bits does not know");
    const declarations = readFileSync(join(scratch, "commented.d.ts"), "utf8")
      // `import = require` is CommonJS, and no field is a Long.
      .replace('import Long = require("long");\n', "");
    return new Map([
      ["longrun.generated.js", BANNER + code],
      ["longrun.generated.d.ts", BANNER + declarations],
    ]);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function main(): void {
  const check = process.argv.includes("--check");
  for (const [name, text] of generate()) {
    const path = join(here, name);
    if (!check) {
      writeFileSync(path, text);
      continue;
    }
    let found = "";
    try {
      found = readFileSync(path, "utf8");
    } catch {}
    if (found !== text) {
      console.error(`proto/${name} is not what longrun.proto generates: run 'node proto/generate.ts' and commit`);
      process.exitCode = 1;
    }
  }
}

if (import.meta.main) main();
