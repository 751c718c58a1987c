/**
 * `npm run parity:reference [-- STEP...]`: makes the tests' reference numbers anew with PyTorch, transformers and peft, and loads longrun's
 * output with them. Python is `$LONGRUN_BENCH_PYTHON`, or an environment made of requirements.txt (see peerPython). Reports for each file
 * the difference from the stored numbers. If that is rounding (ROUNDING), the stored numbers stay, so that another machine changes nothing;
 * otherwise the new ones stay for inspection.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { peerPython } from "../bench/peers.ts";
import { finished } from "../bench/processes.ts";
import { fetchGguf } from "../real/model.ts";
import { ensureTokenizer, REAL_TOKENIZERS } from "../tokenizers.ts";
import { CASES } from "./cases.ts";
import { differences } from "./difference.ts";

/** Larger differences are real: absolute up to 1, relative above. */
const ROUNDING = 5e-6;
/** Only two of its files are used and none of its dependencies (Ray, vLLM), so it gets a separate folder without them. */
const VERL = "verl==0.5.0";
process.chdir(path.join(import.meta.dirname, "../.."));
const PARITY = "test/parity";
const REFERENCE = "test/fixtures/reference";

interface Step {
  /** Files and folders that it writes; none: it only checks. */
  readonly writes: readonly string[];
  run(tools: Tools): Promise<void>;
}

interface Tools {
  /** An empty folder. */
  readonly scratch: string;
  node(...args: string[]): Promise<string>;
  python(...args: string[]): Promise<string>;
  pip(...args: string[]): Promise<string>;
}

const STEPS: Record<string, Step> = {
  models: {
    writes: [`${PARITY}/reference.json`],
    run: async ({ node, python, scratch }) => {
      await node(`${PARITY}/folders.ts`, scratch);
      await python(`${PARITY}/make_reference.py`, scratch);
    },
  },
  saved: {
    writes: ["test/fixtures/saved"],
    run: async ({ python }) => void (await python(`${PARITY}/make_saved.py`)),
  },
  generation: {
    writes: ["test/fixtures/generation"],
    run: async ({ python }) => void (await python(`${REFERENCE}/make_generation_reference.py`)),
  },
  ppo: {
    writes: ["tied", "untied", "kl", "qwen3", "llama", "adamw.json"].map((name) => `test/fixtures/ppo/${name}`),
    run: async ({ python }) => void (await python(`${REFERENCE}/make_ppo_reference.py`)),
  },
  lora: {
    writes: ["all", "some"].map((name) => `test/fixtures/lora/${name}`),
    run: async ({ python }) => void (await python(`${REFERENCE}/make_lora_reference.py`)),
  },
  sft: {
    writes: ["test/fixtures/sft"],
    run: async ({ node, python, scratch }) => {
      await node(`${REFERENCE}/write_sft_cases.ts`, scratch);
      await python(`${REFERENCE}/make_sft_reference.py`, scratch);
    },
  },
  advantages: {
    writes: ["test/fixtures/ppo/advantages.json"],
    run: async ({ pip, python, scratch }) => {
      await pip("install", "--quiet", "--no-deps", "--target", scratch, VERL);
      await python(
        "-c",
        `import sys, runpy; sys.path.append(sys.argv[1]); runpy.run_path(sys.argv[2])`,
        scratch,
        `${REFERENCE}/make_advantage_reference.py`,
      );
    },
  },
  tokenizers: {
    writes: ["qwen2", "words", "kinds.json"].map((name) => `test/fixtures/tokenizer/${name}`),
    run: async ({ node, python }) => {
      await node(`${REFERENCE}/make_tokenizer.ts`);
      await python(`${REFERENCE}/make_tokenizer_reference.py`);
      await python(`${REFERENCE}/make_tokenizer_kinds_reference.py`);
    },
  },
  "real-tokenizers": {
    writes: ["test/fixtures/tokenizer/real"],
    run: async ({ python }) => {
      const folders = [];
      for (const name of REAL_TOKENIZERS) folders.push(await ensureTokenizer(name));
      await python(`${REFERENCE}/make_real_tokenizer_reference.py`, ...folders);
    },
  },
  "real-model": {
    writes: ["test/real/reference.json"],
    run: async ({ python, scratch }) => {
      await fetchGguf(scratch);
      await python("test/real/make_reference.py", scratch);
    },
  },
  gguf: {
    writes: ["test/fixtures/gguf/blocks.json"],
    run: async ({ python }) => void (await python(`${REFERENCE}/make_gguf_reference.py`)),
  },
  adapter: {
    writes: ["test/fixtures/lora/written.json"],
    run: async ({ node, python, scratch }) => {
      await node(`${REFERENCE}/write_adapter_folder.ts`, scratch);
      const computed = await python(`${REFERENCE}/check_adapter_folder.py`, scratch);
      fs.writeFileSync("test/fixtures/lora/written.json", computed);
    },
  },
  "check-folders": {
    writes: [],
    run: async ({ node, python, scratch }) => {
      await node(`${REFERENCE}/write_model_folder.ts`, scratch);
      process.stdout.write(await python(`${REFERENCE}/check_model_folder.py`, scratch));
    },
  },
  "check-tokenizers": {
    writes: [],
    run: async ({ node, python, scratch }) => {
      await node(`${REFERENCE}/write_model_folder.ts`, scratch);
      const folders = ["manifests/quickstart/policy", ...["qwen2", "llama"].map((name) => path.join(scratch, name))];
      process.stdout.write(await python(`${REFERENCE}/check_tokenizer_folder.py`, ...folders));
    },
  },
  templates: {
    writes: ["test/fixtures/templates/templates.json"],
    run: async ({ python }) => void (await python(`${REFERENCE}/make_template_reference.py`)),
  },
  "check-converted": {
    writes: [],
    run: async ({ node, python, scratch }) => {
      await node(`${PARITY}/folders.ts`, scratch);
      const pairs: string[] = [];
      for (const { name } of CASES) {
        const [source, out] = [path.join(scratch, name), path.join(scratch, `${name}.converted`)];
        const options = ["--out", out, "--dtype", "bfloat16", "--shard-size", "16KB"];
        await node("controller/cli.ts", "model", "convert", source, ...options);
        pairs.push(source, out);
      }
      process.stdout.write(await python(`${PARITY}/check_converted.py`, ...pairs));
    },
  },
  "check-merged": {
    writes: [],
    run: async ({ node, python, scratch }) => {
      const folders: string[] = [];
      for (const name of ["all", "some"]) {
        const [model, out] = [`test/fixtures/lora/${name}`, path.join(scratch, name)];
        const adapter = path.join(model, "adapter");
        await node(
          "controller/cli.ts",
          "model",
          "merge",
          "--model",
          model,
          "--adapter",
          adapter,
          "--out",
          out,
          "--dtype",
          "float32",
        );
        folders.push(model, adapter, out);
      }
      process.stdout.write(await python(`${PARITY}/check_merged.py`, ...folders));
    },
  },
};

const asked = process.argv.slice(2);
const unknown = asked.find((name) => !(name in STEPS));
if (unknown !== undefined) {
  process.stderr.write(`no step ${unknown}; there are ${Object.keys(STEPS).join(", ")}\n`);
  process.exit(2);
}

const python = await peerPython("../parity/requirements.txt", "PyTorch, transformers and peft");
await warnOfOtherVersions();
let changed = false;
for (const name of asked.length > 0 ? asked : Object.keys(STEPS)) {
  process.stdout.write(`# ${name}\n`);
  const { writes, run } = STEPS[name];
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "longrun-reference-"));
  const [kept, made] = ["kept", "made"].map((folder) => path.join(scratch, folder));
  const copy = (to: string) => {
    fs.mkdirSync(to);
    for (const file of writes) fs.cpSync(file, path.join(to, file), { recursive: true });
  };
  const putBack = () => {
    for (const file of writes) fs.rmSync(file, { recursive: true, force: true });
    fs.cpSync(kept, ".", { recursive: true });
  };
  try {
    copy(kept);
    fs.mkdirSync(path.join(scratch, "work"));
    await run(toolsIn(path.join(scratch, "work"))).catch((error) => {
      putBack(); // some files may be new already
      throw error;
    });
    copy(made);
    const found = differences(kept, made);
    for (const { file, largest } of found)
      process.stdout.write(`${file}: ${Number.isFinite(largest) ? `numbers differ by ${largest}` : "differs"}\n`);
    if (found.some(({ largest }) => largest > ROUNDING)) {
      changed = true;
      process.stdout.write("the new files were left: look at them, then `npm run test:parity`\n");
    } else if (writes.length > 0) {
      putBack();
      process.stdout.write("the same numbers as before; the files are as they were\n");
    }
  } finally {
    fs.rmSync(scratch, { recursive: true });
  }
}
process.exitCode = changed ? 1 : 0;

function toolsIn(scratch: string): Tools {
  const run = async (file: string, args: string[]) => {
    // a fixed order of sets, no bytecode beside the scripts, no look-ups of models by name
    const env = {
      PYTHONHASHSEED: "0",
      PYTHONDONTWRITEBYTECODE: "1",
      HF_HUB_OFFLINE: "1",
      HF_HUB_DISABLE_PROGRESS_BARS: "1",
    };
    return (await finished(file, args, env)).stdout;
  };
  return {
    scratch,
    node: (...args) => run(process.execPath, args),
    python: (...args) => run(python, args),
    pip: (...args) => run(python, ["-m", "pip", ...args]),
  };
}

/** For a given Python that was not made from requirements.txt. */
async function warnOfOtherVersions(): Promise<void> {
  const list = fs.readFileSync(`${PARITY}/requirements.txt`, "utf8");
  for (const [, name, version] of list.matchAll(/^([\w-]+)==(\S+)$/gm)) {
    const script = `from importlib.metadata import version; print(version("${name}"))`;
    const found = await finished(python, ["-c", script]).then(
      ({ stdout }) => stdout.trim(),
      () => "missing",
    );
    if (found.split("+")[0] !== version) process.stderr.write(`${name} is ${found}, not ${version}\n`);
  }
}
