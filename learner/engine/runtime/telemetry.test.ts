import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

const here = (file: string) => JSON.stringify(new URL(file, import.meta.url).href);
const POLICY = JSON.stringify(path.join(import.meta.dirname, "../../../manifests/quickstart/policy"));
const PROGRAMS = {
  "in the main thread": `
    const { probeDevice } = await import(${here("./runtime.ts")});
    await probeDevice({ kind: "cpu" });`,
  "in the engine's worker": `
    const { startEngine } = await import(${here("../engine.ts")});
    const engine = await startEngine({ model: ${POLICY}, threads: 1 });
    await engine.generate([Int32Array.of(5, 6)], { seeds: [1], temperature: 1, topP: 1, maxNewTokens: 2 });
    await engine.close();`,
};

for (const [where, program] of Object.entries(PROGRAMS))
  test(`ONNX Runtime writes no telemetry files ${where}`, async () => {
    const home = mkdtempSync(path.join(os.tmpdir(), "telemetry-"));
    try {
      const env = { PATH: process.env.PATH, HOME: home, TMPDIR: home }; // without CI, which would switch it off as well
      await promisify(execFile)(process.execPath, ["--eval", `(async () => {${program}})()`], { env });
      assert.deepEqual(readdirSync(home), []);
    } finally {
      rmSync(home, { recursive: true });
    }
  });
