/**
 * Programs must find the packages that prompts promise: compares proto/packages.json, the lock files, the images and a real environment.
 * The paper's packages are tested if PAPER_PYTHON names their environment:
 *
 *     PAPER_PYTHON=ENVIRONMENT node --test actor/packages.test.ts
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import versions from "../proto/packages.json" with { type: "json" };
import { normalizedName, PACKAGES, type PackageSet } from "../proto/packages.ts";
import { pythonOf } from "./exec.ts";
import { ensurePythonEnvironment } from "./python-env.ts";

const text = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
const stages = new Map(
  text("../Dockerfile")
    .split(/^FROM /m)
    .map((stage) => [/ AS (\S+)/.exec(stage)?.[1], stage]),
);
const LOCKS: Record<PackageSet, { file: string; stage: string; image: string; copied: string }> = {
  Basic: { file: "requirements.txt", stage: "programs", image: "sandbox", copied: "programs" },
  Paper: { file: "requirements-paper.txt", stage: "paper-programs", image: "sandbox-paper", copied: "python" },
};
const SETS = Object.keys(LOCKS) as PackageSet[];
/** The packages of the paper's prompt (Appendix C.1), in its order. */
const PAPER =
  "statsmodels pandas timm bayesian-optimization scikit-learn xgboost numpy torch torchvision lightgbm torch-geometric";

test("the Paper set has the packages that the paper's prompt names", () => {
  assert.equal(PACKAGES.Paper.join(" "), PAPER);
  for (const [name, version] of Object.entries(versions.Basic["3.11"]))
    assert.equal(
      { scipy: version, ...versions.Paper["3.11"] }[name],
      version,
      "the Basic set and the Paper set have the same versions",
    );
});

for (const set of SETS)
  describe(set, () => {
    const { file, stage, image, copied } = LOCKS[set];
    const requirements = text(`sandbox/${file}`);

    test("every Python gets the same packages, pinned as lock.py pins them", () => {
      for (const [python, packages] of Object.entries(versions[set])) {
        assert.deepEqual(Object.keys(packages), PACKAGES[set]);
        for (const [name, version] of Object.entries(packages)) {
          const others = Object.values(versions[set]).some((other) => other[name as keyof typeof other] !== version);
          const marker = others ? ` ; python_version ${python === "3.10" ? "<" : ">="} "3.11"` : "";
          assert.ok(requirements.includes(`\n${name}==${version}${marker} \\\n`), `${name} ${version} for ${python}`);
        }
      }
    });

    test("the image installs the locked packages and removes none of them later", () => {
      const programs = stages.get(stage)!;
      assert.ok(programs.includes(`\nCOPY actor/sandbox/${file} /tmp/requirements.txt\n`));
      assert.match(
        programs,
        /^RUN \/opt\/python\/bin\/python -m pip install .*--require-hashes .* -r \/tmp\/requirements\.txt/ms,
      );
      assert.ok(stages.get(image)!.includes(`\nCOPY --from=${stage} /opt/${copied} /opt/python\n`));
      const removed = [...programs.matchAll(/site-packages\/([A-Za-z_]+)/g)].map(([, name]) => normalizedName(name!));
      assert.deepEqual(
        removed.filter((name) => PACKAGES[set].includes(name)),
        [],
      );
    });

    const absent =
      set === "Paper" && !process.env.PAPER_PYTHON && "PAPER_PYTHON names no environment with torch (5 GB)";
    test("an environment has the locked versions, and programs can import them", { skip: absent }, async () => {
      const environment = set === "Paper" ? process.env.PAPER_PYTHON! : (await ensurePythonEnvironment()).directory;
      const names = JSON.stringify(PACKAGES[set]);
      const out = execFileSync(pythonOf(environment), ["-I", "-B", "-c", PROGRAM, names]).toString();
      const [minor, found] = JSON.parse(out);
      assert.deepEqual(found, set === "Basic" && minor < 11 ? versions.Basic["3.10"] : versions[set]["3.11"]);
    });
  });

const PROGRAM = `
import importlib, importlib.metadata as metadata, json, sys
found = {}
for name in json.loads(sys.argv[1]):
    files = metadata.distribution(name).files
    [module, *_] = sorted({f.parts[0] for f in files if f.name == "__init__.py" and len(f.parts) == 2})
    importlib.import_module(module)
    found[name] = metadata.version(name)
print(json.dumps([sys.version_info[1], found]))`;
