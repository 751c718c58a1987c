/** Programs behave in the sandbox as with `python program.py`: how they end, what they see, and what inserted markers change. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { type ExecutionResult, execute } from "../../actor/execution.ts";
import { DEFAULT_LIMITS } from "../../actor/limits.ts";
import { ensurePythonEnvironment } from "../../actor/python-env.ts";
import { Sandbox } from "../../actor/sandbox.ts";
import { instrument, withNonce } from "../../learner/rollout/instrument.ts";

const OUTSIDE_TIMEOUT_MILLISECONDS = 120_000;
const NONCE = "0123456789abcdef0123456789abcdef";
const folder = mkdtempSync(join(tmpdir(), "lr-programs-"));
chmodSync(folder, 0o755);
after(() => rmSync(folder, { recursive: true, force: true }));
const { python } = await ensurePythonEnvironment();
const inputs = { task: join(folder, "task") };
mkdirSync(inputs.task);
writeFileSync(join(inputs.task, "train.csv"), "id,a,y\n1,1,2\n2,2,3\n");
writeFileSync(join(inputs.task, "test.csv"), "id,a\n3,1\n4,2\n");

/** Writes a submission after `body`, which must not prevent it. */
const submits = (body: string) => `${body}
import pandas as pd
test = pd.read_csv("./input/test.csv")
pd.DataFrame({"id": test["id"], "y": 1.5 + test["a"]}).to_csv("submission.csv", index=False)
`;
const OPEN_FILE = `out = open("submission.csv", "w")\nout.write("id,y\\n1,2\\n")\n`;

/** Programs whose exit status, submission and printed text must be as outside. */
const PROGRAMS: Record<string, string> = {
  // The end of the interpreter.
  "a file that is never closed": OPEN_FILE,
  "a file in a cycle": `class Node: pass\nnode = Node()\nnode.me = node\nnode.file = open("submission.csv", "w")\nnode.file.write("id,y\\n")\ndel node\n`,
  "a file of a function's default": `def add(line, out=open("submission.csv", "w")):\n    out.write(line)\nadd("id,y\\n")\n`,
  "a file of a module that the zygote imported": `import json\njson.kept = open("submission.csv", "w")\njson.kept.write("id,y\\n")\n`,
  "a file of the program's own module": `open("other.py", "w").write("out = open('submission.csv', 'w')")\nimport other\nother.out.write("id,y\\n")\n`,
  "a finalizer that writes": `class Book:\n    def __del__(self):\n        with open("submission.csv", "w") as file:\n            file.write("id,y\\n")\nbook = Book()\n`,
  "a finalizer that uses the program's names": `name = "id,y"\nclass Book:\n    def __del__(self):\n        with open("submission.csv", "w") as file:\n            file.write(name)\nbook = Book()\n`,
  "a compressed file that is never closed":
    `import gzip\nout = gzip.open("submission.csv", "wt")\nout.write("id,y\\n")\n`
      .replace("wt", "wb")
      .replace('"id', 'b"id')
      .replace("gzip.open(", "gzip.GzipFile(mtime=0, filename="),
  "an archive that is never closed": `import zipfile\nout = zipfile.ZipFile("submission.csv", "w")\nout.writestr(zipfile.ZipInfo("a"), "text")\n`,
  "an open file and another sys.modules": `import sys\nsys.modules = dict(sys.modules)\nout = open("submission.csv", "w")\nout.write("id,y\\n")\n`,
  "an open file and sys.modules that is no dict": `import sys\nout = open("submission.csv", "w")\nout.write("id,y\\n")\nsys.modules = 5\n`,
  "weakref.finalize": `import weakref\nclass Book: pass\nbook = Book()\nweakref.finalize(book, lambda: open("submission.csv", "w").write("id,y\\n"))\n`,
  "atexit and a thread": `import atexit, threading, time\natexit.register(lambda: open("submission.csv", "w").write("id,y\\n"))\nthreading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()\n`,
  "logging with a memory handler": `import logging, logging.handlers\ntarget = logging.FileHandler("submission.csv")\nlogging.getLogger().addHandler(logging.handlers.MemoryHandler(100, target=target))\nlogging.getLogger().warning("kept")\n`,
  "an exception with an open file": `${OPEN_FILE}raise ValueError("no")\n`,
  "sys.exit with an open file": `${OPEN_FILE}import sys\nsys.exit(3)\n`,
  "an error in atexit": `${OPEN_FILE}import atexit\natexit.register(lambda: 1 / 0)\n`,
  "a daemon thread that uses globals": `import threading, time\ncount = 0\ndef work():\n    global count\n    while True:\n        count = count + 1\nthreading.Thread(target=work, daemon=True).start()\ntime.sleep(0.1)\n`,
  "an open line of output": `import sys\nsys.stdout.write("no line feed")\n`,

  // Its output.
  "a closed stdout": submits(`import os, sys\nsys.stdout = open(os.devnull, "w")\nsys.stdout.close()`),
  "no stdout": submits(`import sys\nsys.stdout = None`),
  "stdout closed": submits(`import sys\nsys.stdout.close()`),
  "descriptor 1 closed": submits(`import os\nos.close(1)`),
  "descriptors closed from 3": `import os\nos.closerange(3, 1024)\n${submits('kept = open("kept", "w")')}kept.close()\nprint(open("kept").read() == "")\n`,
  "stdout with write alone": submits(`import sys\nclass Lines:\n    def write(self, text): pass\nsys.stdout = Lines()`),
  "stdout with write alone, put back": `${submits(`import sys\nclass Lines:\n    def write(self, text): pass\nsys.stdout = Lines()`)}sys.stdout = sys.__stdout__\n`,
  "captured text": `import io, contextlib\nbuffer = io.StringIO()\nwith contextlib.redirect_stdout(buffer):\n    import pandas as pd\n    train = pd.read_csv("./input/train.csv")\n    print(len(train))\nopen("submission.csv", "w").write(str(int(buffer.getvalue())))\n`,
  "descriptor 1 redirected": `import os\nos.dup2(os.open("submission.csv", os.O_CREAT | os.O_WRONLY), 1)\nimport pandas as pd\nprint("only this", flush=True)\n`,
  "a counting print": `count = 0\ndef print(*values, **options):\n    global count\n    count += 1\nimport pandas as pd\nprint(1)\nopen("submission.csv", "w").write(str(count))\n`,
  "a builtin print that counts": `import builtins\ncalls = []\nbuiltins.print = lambda *values, **options: calls.append(values)\nimport pandas as pd\nopen("submission.csv", "w").write(str(calls))\n`,
  "stdout that does not block": submits(`import os\nos.set_blocking(1, False)`),

  // What it sees of itself.
  "its own source": `import inspect\n\n\ndef step(x):\n    return x + 1\n\n\nclass Model:\n    pass\n\n\nopen("submission.csv", "w").write(inspect.getsource(step) + inspect.getsource(Model) + open(__file__).read())\n`,
  "its own source after chdir": `import inspect, os\nos.chdir("/")\ndef step(x):\n    return x + 1\nopen(os.path.join(os.path.dirname(__file__), "submission.csv"), "w").write(open(__file__).read())\n`,
  "a program without a last line break": `import pandas as pd\nopen("submission.csv", "w").write(repr(open(__file__, newline="").read()))`,
  "carriage returns": `import pandas as pd\r\nopen("submission.csv", "w").write(repr(open(__file__, newline="").read()))\r\n`,
  "line numbers": `import sys\nimport pandas as pd\ntrain = pd.read_csv("./input/train.csv")\nopen("submission.csv", "w").write(str(sys._getframe().f_lineno))\n`,
  "its names": `import pandas as pd\nopen("submission.csv", "w").write(str(sorted(globals())))\n`,
  "modules beside it": `import os\nos.chdir("/tmp")\nopen(os.path.join(os.path.dirname(__file__), "beside.py"), "w").write("value = 1")\nimport beside\nprint(beside.value)\n`,
  "its user": `import getpass, os\nassert getpass.getuser()\nassert os.path.expanduser("~") == os.environ["HOME"]\nbefore = os.nice(0)\nassert os.nice(1) == before + 1\n`,
};

/** Programs with several processes, for `namespaces`. */
const PROCESSES: Record<string, string> = Object.fromEntries(
  ["spawn", "forkserver", "fork"].flatMap((method) => [
    [
      `a pool by ${method}`,
      `import multiprocessing as mp\nimport pandas as pd\ndef shift(v): return v + 1.5\nif __name__ == "__main__":\n    test = pd.read_csv("./input/test.csv")\n    with mp.get_context("${method}").Pool(2) as pool:\n        y = pool.map(shift, test["a"].tolist())\n    pd.DataFrame({"id": test["id"], "y": y}).to_csv("submission.csv", index=False)\n`,
    ],
    [
      `an executor by ${method}`,
      `import multiprocessing as mp\nfrom concurrent.futures import ProcessPoolExecutor\ndef shift(v): return v + 1.5\nif __name__ == "__main__":\n    with ProcessPoolExecutor(2, mp_context=mp.get_context("${method}")) as pool:\n        print(list(pool.map(shift, range(3))))\n`,
    ],
    [
      `a process by ${method} that writes`,
      `import multiprocessing as mp\ndef work(queue):\n    open("submission.csv", "w").write("id,y\\n")\n    queue.put(1)\nif __name__ == "__main__":\n    context = mp.get_context("${method}")\n    queue = context.Queue()\n    process = context.Process(target=work, args=(queue,))\n    process.start()\n    print(queue.get())\n    process.join()\n`,
    ],
    [
      `a manager by ${method}`,
      `import multiprocessing as mp\ndef work(shared): shared["a"] = 1\nif __name__ == "__main__":\n    context = mp.get_context("${method}")\n    with context.Manager() as manager:\n        shared = manager.dict()\n        process = context.Process(target=work, args=(shared,))\n        process.start()\n        process.join()\n        print(dict(shared))\n`,
    ],
  ]),
);
PROCESSES["a listener and a client"] =
  `import os, threading\nfrom multiprocessing.connection import Client, Listener\nfor family, address in (("AF_UNIX", None), ("AF_UNIX", "\\0abstract")):\n    with Listener(address, family) as listener:\n        threading.Thread(target=lambda: listener.accept().send("hello")).start()\n        print(Client(listener.address).recv())\n`;
PROCESSES["joblib with the program's functions"] =
  `import numpy as np\nfrom joblib import Parallel, delayed\nfrom sklearn.linear_model import Ridge\ndef fitted(seed):\n    x = np.arange(10.0).reshape(-1, 1)\n    model = Ridge()\n    model.fit(x, x[:, 0] + seed)\n    return float(model.predict([[1.0]])[0])\nprint(Parallel(n_jobs=2)(delayed(fitted)(seed) for seed in range(3)))\n`;

interface Seen {
  status: number;
  submission: string | undefined;
  output: string;
}

const seenOutside = new Map<string, Seen>();

/** Runs a program once, for all levels. */
function outside(text: string): Seen {
  const seen = seenOutside.get(text) ?? runOutside(text);
  seenOutside.set(text, seen);
  return seen;
}

function runOutside(text: string): Seen {
  const place = mkdtempSync(join(folder, "outside-"));
  symlinkSync(inputs.task, join(place, "input"));
  writeFileSync(join(place, "program.py"), text);
  const env = { PATH: process.env.PATH, HOME: place, USER: "program", LANG: "C.UTF-8", PYTHONHASHSEED: "0" };
  const run = spawnSync(python, ["program.py"], {
    cwd: place,
    env,
    encoding: "utf8",
    timeout: OUTSIDE_TIMEOUT_MILLISECONDS,
  });
  const path = join(place, "submission.csv");
  const submission = existsSync(path) ? readFileSync(path, "latin1") : undefined;
  return { status: run.status!, submission, output: run.stdout };
}

for (const level of ["namespaces", "landlock"] as const)
  describe(`an instrumented program at ${level} ends and sees itself as outside`, async () => {
    const sandbox = await Sandbox.start({ python, space: join(folder, level), inputs, level }).catch(
      (error: Error) => error.message,
    );
    after(async () => typeof sandbox !== "string" && sandbox.stop());
    const run = (text: string): Promise<ExecutionResult> => {
      const program = Buffer.from(withNonce(instrument(text), NONCE));
      const limits = { ...DEFAULT_LIMITS, timeoutSeconds: 30 };
      return execute(sandbox as Sandbox, { task: "task", program, nonce: NONCE, limits, seed: 0 });
    };
    const programs = level === "namespaces" ? { ...PROGRAMS, ...PROCESSES } : PROGRAMS;
    for (const [name, text] of Object.entries(programs))
      test(name, async (context) => {
        if (typeof sandbox === "string") return context.skip(sandbox);
        const [expected, result] = [outside(text), await run(text)];
        const said = `${result.outcome} ${result.detail}\n${result.terminalOutput}`;
        assert.equal(result.exitStatus, expected.status, said);
        assert.equal(result.submission?.toString("latin1"), expected.submission, said);
        assert.equal(result.forgedMarkers, 0);
        for (const line of expected.output.split("\n")) assert.ok(result.terminalOutput.includes(line), said);
        for (const { name: marker } of result.markers) assert.match(result.terminalOutput.toString(), RegExp(marker));
        assert.ok(!result.terminalOutput.includes(NONCE));
      });

    test("markers come out in their place, also while stdout is another object", async (context) => {
      if (typeof sandbox === "string") return context.skip(sandbox);
      const text = `import sys, io
sys.stdout.write("50%")
import pandas as pd
print()
sys.stdout = io.StringIO()
train = pd.read_csv("./input/train.csv")
sys.stdout = sys.__stdout__
print("rows", len(train))
raise ValueError(1)
`;
      const { markers, terminalOutput, detail } = await run(text);
      assert.deepEqual(
        markers.map(({ name }) => name),
        ["imported packages", "loaded data"],
      );
      assert.equal(detail, "ValueError in line 9");
      const expected =
        '50%imported packages\n\nloaded data\nrows 2\nTraceback (most recent call last):\n  File "program.py", line 9, in <module>\n    raise ValueError(1)\nValueError: 1\n';
      assert.equal(terminalOutput.toString(), expected);
    });

    test("a program without a submission learns which files it left, those like a submission first", async (context) => {
      if (typeof sandbox === "string") return context.skip(sandbox);
      const found = (text: string) => run(text).then(({ detail, outcome }) => [outcome, detail]);
      const none = "no submission.csv in the program's directory; found";
      const text = `import os\nos.makedirs("output/deep/er/est/of")\nopen("model.pkl", "w")\nopen("output/submission.CSV", "w")\nopen("output/deep/er/est/of/all", "w")\nos.symlink("/etc", "link")\n`;
      assert.deepEqual(await found(text), ["completed", `${none} "output/submission.CSV", "model.pkl"`]);
      assert.deepEqual(await found("pass\n"), ["completed", `${none} no file`]);
      const many = `for number in range(300):\n    open("x\\n%03d" % number + "y" * 200, "w")\n`;
      const [, said] = await found(many);
      assert.ok(said!.length < 1500 && !said!.includes("\n") && said!.includes("x 007y"), said);
      assert.deepEqual(await found(`open("submission.csv", "w")\n`), ["completed", ""]);
    });

    test("the program's file is read-only and holds the lines that the policy wrote", async (context) => {
      if (typeof sandbox === "string") return context.skip(sandbox);
      const text = `import os, sys\nprint(sys.argv, os.path.basename(__file__), oct(os.stat(__file__).st_mode), sorted(os.listdir(".")))\n`;
      const { terminalOutput } = await run(text);
      assert.match(terminalOutput.toString(), /\['program\.py'\] program\.py 0o100444 \['input', 'program\.py'\]\n$/);
    });
  });
