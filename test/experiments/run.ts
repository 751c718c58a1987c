/**
 * `npm run experiment NAME [-- FLAGS]`: one experiment of the lab report (README.md beside this file), reproducible by its
 * seeds. Writes `results/DATE/`.
 */
import { e0 } from "./e0.ts";
import { e1 } from "./e1.ts";
import { e2 } from "./e2.ts";
import { e3 } from "./e3.ts";
import { e4 } from "./e4.ts";
import { e5 } from "./e5.ts";
import { e6 } from "./e6.ts";
import { e7 } from "./e7.ts";
import { type Experiment, keep } from "./result.ts";

const EXPERIMENTS: Record<string, Experiment> = { E0: e0, E1: e1, E2: e2, E3: e3, E4: e4, E5: e5, E6: e6, E7: e7 };

const [name = "", ...flags] = process.argv.slice(2);
const experiment = Object.hasOwn(EXPERIMENTS, name) ? EXPERIMENTS[name] : undefined;
if (experiment === undefined) {
  const list = Object.entries(EXPERIMENTS).map(([each, { question }]) => `  ${each}  ${question}`);
  process.stderr.write(`no experiment is called ${JSON.stringify(name)}; there are:\n${list.join("\n")}\n`);
  process.exit(2);
}
const began = new Date();
const findings = await experiment.run(flags).catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
});
process.stdout.write(`${findings.page}\n`);
for (const path of await keep(name, findings, began)) process.stdout.write(`written to ${path}\n`);
