/** What prompts promise is what programs find: proto/packages.json, requirements.txt, the image and a real environment. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import versions from "../proto/packages.json" with { type: "json" };
import { PACKAGES } from "../proto/packages.ts";
import { ensurePythonEnvironment } from "./python-env.ts";

const text = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
const requirements = text("sandbox/requirements.txt");
const dockerfile = text("../Dockerfile");

test("the same packages for every Python, each pinned as lock.py pins it", () => {
  for (const [python, packages] of Object.entries(versions)) {
    assert.deepEqual(Object.keys(packages), PACKAGES);
    for (const [name, version] of Object.entries(packages)) {
      const others = Object.values(versions).some((other) => other[name as keyof typeof other] !== version);
      const marker = others ? ` ; python_version ${python === "3.10" ? "<" : ">="} "3.11"` : "";
      assert.ok(requirements.includes(`\n${name}==${version}${marker} \\\n`), `${name} ${version} for ${python}`);
    }
  }
});

test("the sandbox image has what requirements.txt pins, and nothing takes a package out of it again", () => {
  const stages = new Map(dockerfile.split(/^FROM /m).map((stage) => [/ AS (\S+)/.exec(stage)?.[1], stage]));
  const programs = stages.get("programs")!;
  assert.match(programs, /^COPY actor\/sandbox\/requirements\.txt \/tmp\/requirements\.txt$/m);
  assert.match(
    programs,
    /^RUN \/opt\/python\/bin\/python -m pip install .*--require-hashes .* -r \/tmp\/requirements\.txt$/ms,
  );
  assert.match(stages.get("sandbox")!, /^COPY --from=programs \/opt\/programs \/opt\/python$/m);
  const removed = [...programs.matchAll(/site-packages\/([A-Za-z_]+)/g)].map(([, name]) => name);
  assert.deepEqual(
    removed.filter((name) => PACKAGES.includes(name!.replaceAll("_", "-"))),
    [],
  );
});

test("a laptop's environment has these versions, and they can be imported", async () => {
  const { python } = await ensurePythonEnvironment();
  const program = `
import importlib, importlib.metadata as metadata, json, sys
found = {}
for name in json.loads(sys.argv[1]):
    files = metadata.distribution(name).files
    [module, *_] = sorted({f.parts[0] for f in files if f.name == "__init__.py" and len(f.parts) == 2})
    importlib.import_module(module)
    found[name] = metadata.version(name)
print(json.dumps([sys.version_info[1], found]))`;
  const [minor, found] = JSON.parse(execFileSync(python, ["-I", "-c", program, JSON.stringify(PACKAGES)]).toString());
  assert.deepEqual(found, minor < 11 ? versions["3.10"] : versions["3.11"]);
});
