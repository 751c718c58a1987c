import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { ensurePythonEnvironment, explainFailure } from "./python-env.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-python-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Makes an interpreter that reports what the test wants. */
function fakePython(name: string, said: object | string, venv = "exit 1"): string {
  const path = join(folder, name);
  const answer = typeof said === "string" ? said : `echo '${JSON.stringify(said)}'`;
  writeFileSync(path, `#!/bin/sh\ncase "$*" in *"-m venv"*) ${venv};; *) ${answer};; esac\n`);
  chmodSync(path, 0o755);
  return path;
}
const sound = {
  executable: "",
  version: "3.12.1",
  info: [3, 12],
  machine: "x86_64",
  prefix: "/",
  implementation: "cpython",
  missing: [],
};

describe("a Python that cannot be used is refused in one line with a remedy", () => {
  const cases: [name: string, python: string, code: string, message: RegExp, packages?: "Paper"][] = [
    ["absent", join(folder, "none"), "pythonMissing", /cannot run ".*none" \(not found\); install Python >= 3\.10/],
    [
      "too old",
      fakePython("old", { ...sound, version: "3.9.2", info: [3, 9] }),
      "pythonTooOld",
      /is Python 3\.9\.2, and >= 3\.10 is needed/,
    ],
    [
      "without ensurepip",
      fakePython("bare", { ...sound, missing: ["ensurepip"] }),
      "pythonVenv",
      /lacks the modules ensurepip.*python3-venv/,
    ],
    [
      "older than the paper's packages",
      fakePython("old-paper", { ...sound, version: "3.10.2", info: [3, 10] }),
      "pythonTooOld",
      /is Python 3\.10\.2, and 3\.11 is needed for actors\.packages: Paper; name one with --python/,
      "Paper",
    ],
    [
      "newer than the paper's packages",
      fakePython("new-paper", sound),
      "pythonPackages",
      /is Python 3\.12\.1, and actors\.packages: Paper is locked for 3\.11 alone; name one with --python/,
      "Paper",
    ],
    ["PyPy", fakePython("pypy", { ...sound, implementation: "pypy" }), "pythonMissing", /CPython is needed/],
    ["broken", fakePython("broken", "exit 3"), "pythonMissing", /cannot run/],
  ];
  for (const [name, python, code, message, packages] of cases)
    test(`a Python that is ${name} is refused`, async () => {
      const made = ensurePythonEnvironment({ python, packages, cacheRoot: join(folder, `cache-${code}-${name}`) });
      await assert.rejects(made, (error: Error & { code: string }) => {
        assert.equal(error.code, code);
        assert.match(error.message, message);
        assert.ok(!error.message.includes("\n"));
        return true;
      });
    });

  test("an interpreter that the user named is bad input, the machine's own Python is not", () => {
    const statusOf = (args: string[], PATH = process.env.PATH) =>
      spawnSync(process.execPath, [join(import.meta.dirname, "python-env.ts"), ...args], {
        env: { ...process.env, PATH },
      }).status;
    assert.equal(statusOf(["--python", join(folder, "none")]), 2);
    assert.equal(statusOf([], join(folder, "none")), 1);
  });

  test("a venv that fails leaves neither folder nor lock", async () => {
    const python = fakePython(
      "full",
      { ...sound, executable: join(folder, "full") },
      'echo "No space left on device" >&2; exit 1',
    );
    const cache = join(folder, "cache-full");
    await assert.rejects(ensurePythonEnvironment({ python, cacheRoot: cache }), { code: "diskFull" });
    assert.deepEqual(readdirSync(join(cache, "python")), []);
  });

  test("the error of a cache folder that cannot be written names the folder", async () => {
    writeFileSync(join(folder, "file"), "");
    const python = fakePython("sound", sound);
    await assert.rejects(ensurePythonEnvironment({ python, cacheRoot: join(folder, "file") }), {
      message: /^LONGRUN_CACHE \/.*: a part of this path is not a folder; check the path$/,
    });
  });

  test("a process waits for the lock of a living process and takes the lock of a dead one", async () => {
    const python = fakePython("locked", { ...sound, executable: join(folder, "locked") });
    const cache = join(folder, "cache-lock");
    mkdirSync(join(cache, "python"), { recursive: true });
    // The digest names the lock file.
    const attempt = () => ensurePythonEnvironment({ python, cacheRoot: cache, waitSeconds: 0.3 });
    await assert.rejects(attempt(), { code: "pythonVenv" });
    const digest = await ensureDigest(python);
    const lock = join(cache, "python", `.${digest}.lock`);
    writeFileSync(lock, String(process.pid));
    await assert.rejects(attempt(), { message: new RegExp(`process ${process.pid} has held`) });
    writeFileSync(lock, "4194304");
    await assert.rejects(attempt(), { code: "pythonVenv" });
  });
});

/** Returns the digest of this interpreter's environment, from the message of a build that gets as far as pip. */
async function ensureDigest(python: string): Promise<string> {
  let line = "";
  const options = {
    python,
    cacheRoot: join(folder, "cache-digest"),
    onProgress: (text: string) => {
      line = text;
    },
  };
  await ensurePythonEnvironment(options).catch(() => {});
  return /([0-9a-f]{16}) \(/.exec(line)![1]!;
}

describe("a failure of pip gets a code and a remedy", () => {
  const cases: [printed: string, code: string, message: RegExp][] = [
    ["OSError: [Errno 28] No space left on device", "diskFull", /disk is full.*LONGRUN_CACHE/],
    ["Max retries exceeded with url: /simple/numpy/", "pythonPackages", /cannot be reached.*PIP_INDEX_URL/],
    ["Temporary failure in name resolution", "pythonPackages", /cannot be reached/],
    [
      "ERROR: No matching distribution found for numpy==2.4.6",
      "pythonPackages",
      /there are no wheels for this machine/,
    ],
    [
      "ERROR: Could not find a version that satisfies the requirement numpy==2.4.6 (from versions: none)\nERROR: No matching distribution found for numpy==2.4.6",
      "pythonPackages",
      /the package index offers no numpy==2\.4\.6; check that PyPI, or the mirror in PIP_INDEX_URL, can be reached/,
    ],
    ["SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]", "pythonPackages", /cannot be reached/],
    ["ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE", "pythonPackages", /pinned hash/],
    ["noise\nERROR: something else\nnoise", "pythonPackages", /pip failed: ERROR: something else/],
  ];
  for (const [printed, code, message] of cases)
    test(`pip printed: ${printed.slice(0, 50)}`, () => {
      const error = explainFailure("pythonPackages", "Basic", "/cache", printed);
      assert.equal(error.code, code);
      assert.match(error.message, message);
      assert.ok(!error.message.includes("\n"));
    });
});
