import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { FolderError } from "../../proto/folders.ts";
import { metrics } from "../grading/metrics.ts";
import { TaskError } from "./errors.ts";
import { type PrepareOptions, prepareTask } from "./prepare.ts";
import { type RegistryEntry, readRegistry } from "./registry.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-prepare-"));
const index = join(folder, "index");
const downloads = join(folder, "downloads");
const python = "python3";

/** Makes packages like an index's; the sdist's setup.py would leave a file behind if it ran. */
const makePackages = `
import io, sys, tarfile, zipfile
index, trap = sys.argv[1:]
rows = "".join(f"{carat / 10},Ideal,{500 * carat}\\n" for carat in range(1, 9))
with zipfile.ZipFile(f"{index}/gems-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("gems/data.csv", "carat,cut,price\\n" + rows)
    wheel.writestr("gems-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: gems\\nVersion: 1.0\\n")
    wheel.writestr("gems-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("gems-1.0.dist-info/RECORD", "")
def add(archive, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))
inner = io.BytesIO()
with tarfile.open(fileobj=inner, mode="w:gz") as archive:
    add(archive, "reviews/truth.txt", "1\\t2.5\\tA film, \\"good\\"\\r\\n2\\t-1.0\\tDull\\u0085 film\\r\\n3\\t0.5\\tDull\\u0085 film\\r\\n4\\t1.25\\tFine".encode())
with tarfile.open(f"{index}/films-1.0.tar.gz", "w:gz") as archive:
    add(archive, "films-1.0/PKG-INFO", b"Metadata-Version: 2.1\\nName: films\\nVersion: 1.0\\n")
    add(archive, "films-1.0/setup.py", f"open({trap!r}, 'w').write('ran')\\n".encode())
    add(archive, "films-1.0/reviews.tar.gz", inner.getvalue())
`;

const sha256 = (path: string) => createHash("sha256").update(readFileSync(path)).digest("hex");
const registry: Record<string, RegistryEntry> = {};
const trap = join(folder, "setup-was-run");

before(() => {
  mkdirSync(index);
  execFileSync(python, ["-", index, trap], { input: makePackages });
  const common = { sha256: {}, description: "# Small\n\nPredict it.\n" };
  const grader = { idColumn: "id", rewardFloor: -9 };
  registry.diamonds = {
    ...common,
    title: "Small diamonds",
    source: {
      ...{ package: "gems", version: "1.0", format: "wheel", licence: "MIT", file: "gems-1.0-py3-none-any.whl" },
      sha256: sha256(join(index, "gems-1.0-py3-none-any.whl")),
    },
    member: "gems/data.csv",
    rows: { train: 5, test: 2 },
    task: { grader: { ...grader, metric: "MAE", targetColumns: ["price"], direction: "Lower" } },
  };
  registry.movie = {
    ...common,
    title: "Small movie",
    source: {
      ...{ package: "films", version: "1.0", format: "sdist", licence: "MIT", file: "films-1.0.tar.gz" },
      sha256: sha256(join(index, "films-1.0.tar.gz")),
    },
    member: "films-1.0/reviews.tar.gz",
    inner: "reviews/truth.txt",
    rows: { train: 2, test: 1 },
    task: { grader: { ...grader, metric: "R2", targetColumns: ["rating"], direction: "Higher" } },
  };
  // pip must find only these packages.
  Object.assign(process.env, { PIP_CONFIG_FILE: "/dev/null", PIP_NO_INDEX: "1", PIP_FIND_LINKS: index });
});
after(() => rmSync(folder, { recursive: true, force: true }));

const prepare = (task: string, changes: Partial<PrepareOptions> = {}) =>
  prepareTask({ task, out: join(folder, "tasks"), python, downloads, registry, ...changes });

test("a wheel becomes a task folder", () => {
  const made = prepare("diamonds");
  const directory = join(folder, "tasks", "diamonds");
  assert.deepEqual(made, { task: "diamonds", directory, created: true });
  const read = (path: string) => readFileSync(join(directory, path), "utf8");
  // np.random.RandomState(0).permutation(8) is 6 2 1 7 3 0 5 4.
  assert.equal(read("prepared/public/test.csv"), "id,carat,cut\n0,0.7,Ideal\n1,0.3,Ideal\n");
  assert.equal(read("prepared/private/answers.csv"), "id,price\n0,3500\n1,1500\n");
  assert.equal(read("prepared/public/sample_submission.csv"), "id,price\n0,0\n1,0\n");
  assert.equal(
    read("prepared/public/train.csv"),
    "id,carat,cut,price\n2,0.2,Ideal,1000\n3,0.8,Ideal,4000\n4,0.4,Ideal,2000\n5,0.1,Ideal,500\n6,0.6,Ideal,3000\n",
  );
  assert.equal(read("prepared/public/description.md"), registry.diamonds!.description);
  assert.equal(parse(read("task.yaml")).name, "diamonds");
  assert.equal(statSync(join(directory, "prepared/private")).mode & 0o777, 0o700);
  assert.equal(statSync(join(directory, "prepared/private/answers.csv")).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(join(folder, "tasks")), ["diamonds"], "nothing is left beside it");
});

test("a prepared task is kept, and a damaged one is made again", () => {
  const registered = { ...registry, diamonds: { ...registry.diamonds!, sha256: {} as Record<string, string> } };
  const directory = prepare("diamonds", { out: join(folder, "again") }).directory;
  for (const path of ["public/train.csv", "private/answers.csv"])
    registered.diamonds.sha256[path] = sha256(join(directory, "prepared", path));
  const again = () => prepare("diamonds", { out: join(folder, "again"), registry: registered }).created;
  assert.equal(again(), false);
  appendFileSync(join(directory, "prepared/public/train.csv"), "x");
  assert.equal(again(), true);
  chmodSync(join(directory, "prepared/private/answers.csv"), 0o644);
  assert.equal(again(), true);
  rmSync(join(directory, "prepared/private"), { recursive: true });
  assert.equal(again(), true);
  writeFileSync(join(directory, "task.yaml"), "name: diamonds\n");
  assert.equal(again(), true);
  assert.equal(again(), false);
});

test("an sdist is fetched and read, and no part of it is executed", () => {
  const { directory } = prepare("movie");
  const answers = readFileSync(join(directory, "prepared/private/answers.csv"), "utf8");
  assert.equal(existsSync(trap), false);
  // np.random.RandomState(0).permutation(3) is 2 1 0; the repeated sentence is dropped before.
  assert.equal(answers, "id,rating\n0,1.25\n");
  assert.equal(
    readFileSync(join(directory, "prepared/public/train.csv"), "utf8"),
    'id,text,rating\n1,Dull\u0085 film,-1.0\n2,"A film, ""good""",2.5\n',
  );
});

test("a failed preparation gives one line with a code and leaves no files", async (t) => {
  const cases: [string, string, RegExp, Partial<PrepareOptions>, (entry: RegistryEntry) => void][] = [
    ["unknown task", "input", /no bundled task "gold"; there are diamonds, movie/, { task: "gold" }, () => {}],
    ["object property as task", "input", /no bundled task "toString"/, { task: "toString" }, () => {}],
    ["no such Python", "python", /cannot start \/nowhere\/python/, { python: "/nowhere/python" }, () => {}],
    [
      "package not on the index",
      "download",
      /cannot download rocks 1.0 .*put gems/,
      {},
      (e) => (e.source.package = "rocks"),
    ],
    ["file with another hash", "hash", /SHA-256 differs/, {}, (e) => (e.source.sha256 = "0".repeat(64))],
    [
      "member not in the package",
      "python",
      /no item named 'gems\/none.csv'|gems\/none.csv/,
      {},
      (e) => (e.member = "gems/none.csv"),
    ],
    ["too few rows", "python", /has 8 rows, the task needs 102/, {}, (e) => (e.rows.train = 100)],
    [
      "other bytes than registered",
      "hash",
      /public\/test.csv came out different/,
      {},
      (e) => (e.sha256 = { "public/test.csv": "0" }),
    ],
    [
      "out is a file",
      "input",
      /^--out .*: a part of this path is not a folder/,
      { out: join(folder, "file", "x") },
      () => {},
    ],
  ];
  writeFileSync(join(folder, "file"), "");
  for (const [name, code, message, options, change] of cases)
    await t.test(name, () => {
      const entry = structuredClone(registry.diamonds!);
      change(entry);
      const out = join(folder, "failed");
      // Only tests of fetching fetch; the others find the file.
      const fetches = code === "download" || entry.source.sha256 !== registry.diamonds!.source.sha256;
      const fresh = {
        out,
        downloads: fetches ? join(folder, "fresh") : downloads,
        registry: { ...registry, diamonds: entry },
      };
      assert.throws(
        () => prepareTask({ task: "diamonds", python, ...fresh, ...options }),
        (error) => {
          assert.ok(error instanceof TaskError || error instanceof FolderError, String(error));
          assert.equal(error.code, code);
          assert.match(error.message, message);
          assert.ok(!error.message.includes("\n"));
          return true;
        },
      );
      assert.deepEqual(existsSync(out) ? readdirSync(out) : [], []);
      assert.deepEqual(
        existsSync(fresh.downloads) ? readdirSync(fresh.downloads).filter((file) => file.startsWith(".")) : [],
        [],
      );
    });
});

test("the permutation equals numpy's", () => {
  // np.random.RandomState(0).permutation(20) and, of 3000, the first five and the sum of i * p[i].
  const code =
    "import json,prepare as p; q=p.permutation(3000); print(json.dumps([p.permutation(20), q[:5], sum(i*x for i,x in enumerate(q))]))";
  const cwd = fileURLToPath(new URL(".", import.meta.url));
  const printed = execFileSync(python, ["-B", "-c", code], { cwd, encoding: "utf8" });
  assert.deepEqual(JSON.parse(printed), [
    [18, 1, 19, 8, 10, 17, 6, 13, 4, 2, 5, 14, 9, 7, 16, 11, 3, 0, 15, 12],
    [311, 1025, 1587, 2941, 2980],
    6821425679,
  ]);
});

test("the bundled tasks are complete", () => {
  for (const [name, entry] of Object.entries(readRegistry())) {
    assert.match(entry.source.sha256, /^[0-9a-f]{64}$/, name);
    assert.deepEqual(
      Object.keys(entry.sha256).sort(),
      ["private/answers.csv", "public/sample_submission.csv", "public/test.csv", "public/train.csv"],
      name,
    );
    const { grader } = entry.task as {
      grader: { metric: keyof typeof metrics; direction: string; targetColumns: string[] };
    };
    assert.equal(metrics[grader.metric].direction, grader.direction, name);
    for (const column of grader.targetColumns) assert.ok(entry.description.includes(column), name);
    assert.ok(entry.description.includes("submission.csv"), name);
  }
});

test("the command prepares the named tasks", () => {
  const command = fileURLToPath(new URL("prepare.ts", import.meta.url));
  const run = (...options: string[]) => spawnSync(process.execPath, [command, ...options], { encoding: "utf8" });
  const cases: [string[], number, RegExp][] = [
    [[], 2, /^prepare: --task is missing/],
    [["--task", "wage"], 2, /^prepare: --out is missing/],
    [["--taks", "wage"], 2, /^prepare: Unknown option '--taks'/],
    [["--task", "gold", "--out", folder, "--python", python], 2, /^prepare: --task: no bundled task "gold"/],
    [["--task", "wage", "--out", folder, "--python", "/nowhere", "--downloads", folder], 1, /^prepare: cannot start/],
  ];
  for (const [options, status, message] of cases) {
    const { status: actual, stderr, stdout } = run(...options);
    assert.deepEqual([actual, stdout], [status, ""], stderr);
    assert.match(stderr, message);
    assert.equal(stderr.trimEnd().split("\n").length, 1);
  }
});
