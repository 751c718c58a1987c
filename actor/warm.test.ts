/** The modules that sandboxes import beforehand are the same for every program and change no program's results. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { execute } from "./execution.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import { ensurePythonEnvironment } from "./python-env.ts";
import { Sandbox } from "./sandbox.ts";
import { Sidecar } from "./sidecar.fixture.ts";

const folder = mkdtempSync(join(tmpdir(), "lr-warm-"));
chmodSync(folder, 0o755);
after(() => rmSync(folder, { recursive: true, force: true }));
const environment = join(folder, "environment");
const THREAD = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n";
await makeEnvironment({
  tiny: "",
  "tiny/part": "",
  threads: THREAD,
  writes: "import os\nopen(os.path.join(os.environ['MPLCONFIGDIR'], 'fonts'), 'w').write('x')\n",
  numpy: "class ones:\n    def __init__(self, n):\n        self.sum = lambda: n\n", // the only use of numpy in isolation.ts
});

/** Makes an environment without pip and other packages: a few files, and the interpreter of the actors' environment. */
async function makeEnvironment(packages: Record<string, string>): Promise<void> {
  const { python } = await ensurePythonEnvironment();
  const version = execFileSync(python, ["-c", "import sys; print('python%d.%d' % sys.version_info[:2])"]);
  const site = join(environment, "lib", version.toString().trim(), "site-packages");
  mkdirSync(join(environment, "bin"), { recursive: true });
  const interpreter = realpathSync(python);
  symlinkSync(interpreter, join(environment, "bin", "python"));
  writeFileSync(join(environment, "pyvenv.cfg"), `home = ${dirname(interpreter)}\n`);
  for (const [name, text] of Object.entries(packages)) {
    mkdirSync(join(site, name), { recursive: true });
    writeFileSync(join(site, name, "__init__.py"), text);
  }
}

const end = (sandbox: Sandbox, program: string) => {
  const limits = { ...DEFAULT_LIMITS, timeoutSeconds: 30 };
  return execute(sandbox, { task: "t", program: Buffer.from(program), nonce: "", limits, seed: 0 });
};
const run = async (sandbox: Sandbox, program: string) => {
  const result = await end(sandbox, program);
  assert.equal(result.outcome, "completed", `${result.detail} ${result.terminalOutput}`);
  return result.terminalOutput.toString().trim();
};
const IS_WARM = "import sys\nprint('tiny' in sys.modules)";

for (const level of ["namespaces", "landlock"] as const)
  describe(`a sandbox at ${level}`, () => {
    async function start(options: { python: string; warm?: string[]; onLog?: (line: string) => void }) {
      const place = { space: join(folder, level), inputs: {}, level, startSeconds: 60 };
      return Sandbox.start({ ...place, ...options }).catch((error: Error) => error.message);
    }

    test("has imported the requested packages that are installed and leave no threads", async (context) => {
      const lines: string[] = [];
      const onLog = (line: string) => lines.push(line);
      const warm = ["tiny", "threads", "tiny.part", "tiny.none", "nothing", "writes"];
      const sandbox = await start({ python: join(environment, "bin", "python"), warm, onLog });
      if (typeof sandbox === "string") return context.skip(sandbox);
      try {
        assert.deepEqual(sandbox.info.warm, ["tiny", "tiny.part", "writes"]);
        assert.deepEqual(lines, ["threads is not imported beforehand: it leaves threads behind, or ends the process"]);
        assert.equal(await run(sandbox, IS_WARM), "True");
        assert.equal(await run(sandbox, "import os\nprint(os.listdir(os.environ['TMPDIR']))"), "[]");
        assert.equal(await run(sandbox, "import threads, threading\nprint(threading.active_count())"), "2");
      } finally {
        await sandbox.stop();
      }
    });

    test("gives a program only the features that it enabled, although other programs enabled more", async (context) => {
      const sandbox = await start(await ensurePythonEnvironment());
      if (typeof sandbox === "string") return context.skip(sandbox);
      try {
        assert.ok(sandbox.info.warm.includes("sklearn.impute"), String(sandbox.info.warm));
        for (const [enable, use] of [
          ["enable_iterative_imputer", "from sklearn.impute import IterativeImputer"],
          ["enable_halving_search_cv", "from sklearn.model_selection import HalvingGridSearchCV"],
        ]) {
          const refused = async () => {
            const { outcome, terminalOutput } = await end(sandbox, use!);
            assert.equal(outcome, "failed", use);
            assert.match(terminalOutput.toString(), /ImportError: .* is experimental/);
          };
          await refused();
          await run(sandbox, `import sklearn.experimental.${enable}\n${use}`);
          await refused();
        }
      } finally {
        await sandbox.stop();
      }
    });
  });

test("whether a package is warm or not, a program draws the same numbers and has the same environment", async (context) => {
  const { python } = await ensurePythonEnvironment();
  const program = `
import os, sys
print("numpy" in sys.modules, file=sys.stderr)
import numpy
print(numpy.random.rand(), sorted(os.environ.items()))`;
  const seen: string[] = [];
  for (const warm of [[], ["numpy"]]) {
    const options = { python, space: join(folder, "numbers"), inputs: {}, level: "landlock" as const, warm };
    const sandbox = await Sandbox.start({ ...options, startSeconds: 60 }).catch((error: Error) => error.message);
    if (typeof sandbox === "string") return context.skip(sandbox);
    seen.push(await run(sandbox, program));
    await sandbox.stop();
  }
  const [cold, warmed] = seen.map((text) => text.split("\n"));
  assert.deepEqual([cold![0], warmed![0]], ["False", "True"]);
  assert.equal(cold![1], warmed![1]);
  assert.match(cold![1]!, /'JOBLIB_MULTIPROCESSING', '0'/); // one process: read when joblib is imported, here or in the zygote
});

test("a listening sandbox starts again without a module that leaves threads", async () => {
  const sidecar = new Sidecar({ environment, warm: ["tiny", "threads"] });
  try {
    await sidecar.listening();
    const place = { socket: sidecar.socket, inputs: {}, level: "landlock" as const };
    const sandbox = await Sandbox.start({ ...place, startSeconds: 60 });
    assert.deepEqual([sandbox.info.warm, await run(sandbox, IS_WARM)], [["tiny"], "True"]);
    await sandbox.stop();
  } finally {
    await sidecar.stop();
  }
});
