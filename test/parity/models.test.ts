/** One model per family, which together cover most options; `npm run test:parity` runs all of them. */
import { CASES } from "./cases.ts";
import { checkCase } from "./models.ts";

const QUICK = ["qwen2-bfloat16-sharded", "qwen3-bias-yarn", "llama-llama3-float16-one-key-head"];
for (const parity of CASES) if (QUICK.includes(parity.name)) checkCase(parity);
