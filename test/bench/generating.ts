/**
 * Generates without end with the quickstart's policy and a run's number of rows: `node generating.ts THREADS`. Reports its start to its
 * parent.
 */
import { fileURLToPath } from "node:url";
import { DEFAULT_SLOTS, readTokenizer, startEngine } from "../../learner/engine/index.ts";

const POLICY = fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url));
const [threads] = process.argv.slice(2);
const engine = await startEngine({ model: POLICY, threads: Number(threads) });
const prompt = readTokenizer(POLICY).encode("Predict the price of a diamond.");
/** A new row replaces each row that ends. */
let seed = 0;
const row = () =>
  engine.generate([prompt], { seeds: [seed++], temperature: 1, topP: 1, maxNewTokens: 200, eosIds: [] });
const rows = async () => {
  for (;;) await row();
};
await row();
for (let slot = 0; slot < DEFAULT_SLOTS; slot++) void rows();
process.send!("begun");
