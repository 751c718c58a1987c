/**
 * Instruments one program: `node learner/rollout/instrument-command.ts [--instrumenter Syntax|None] < program.py`.
 *
 * Prints one JSON object `{"program","markers","instrumenter","verificationFailures"}`; the program contains `@@NONCE@@` in place of the
 * nonce. Exit status: 0 done, even if nothing could be inserted; 2 bad input.
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { instrument } from "./instrument.ts";

function main(): number {
  try {
    const { values } = parseArgs({ options: { instrumenter: { type: "string", default: "Syntax" } } });
    const { instrumenter } = values;
    if (instrumenter !== "Syntax" && instrumenter !== "None")
      throw new Error(`--instrumenter ${instrumenter}: give Syntax or None`);
    const bytes = readFileSync(0);
    const program = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    console.log(JSON.stringify(instrument(program, instrumenter)));
    return 0;
  } catch (error) {
    const notText = error instanceof TypeError && "code" in error && error.code === "ERR_ENCODING_INVALID_ENCODED_DATA";
    console.error(`instrument: ${notText ? "the program is not UTF-8 text" : (error as Error).message}`);
    return 2;
  }
}

if (import.meta.main) process.exitCode = main();
