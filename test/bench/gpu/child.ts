/** `node child.ts PART OPTIONS`: the process of a part (part.ts). */
import { writeSync } from "node:fs";
import { probeDevice } from "../../../learner/engine/runtime/runtime.ts";
import { counts } from "./counts.ts";
import { decode } from "./decode.ts";
import { memory } from "./memory.ts";
import { parity } from "./parity.ts";
import { FINDINGS_FD, type Part, type PartName, type PartOptions } from "./part.ts";
import { speed } from "./speed.ts";

const PARTS: Record<PartName, Part> = { parity, counts, decode, speed, memory };

const [name, json] = process.argv.slice(2) as [PartName, string];
const options = JSON.parse(json) as PartOptions;
try {
  await probeDevice(options.device);
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`); // includes the remedy
  process.exit(1);
}
for await (const finding of PARTS[name](options)) writeSync(FINDINGS_FD, `${JSON.stringify(finding)}\n`);
process.exit(0);
