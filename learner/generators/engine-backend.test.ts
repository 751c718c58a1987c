import assert from "node:assert/strict";
import { cpSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { readConfig } from "../engine/index.ts";
import type { Row } from "./backend.ts";
import { EngineBackend } from "./engine-backend.ts";
import type { RowRequest } from "./protocol.ts";

const POLICY = fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url));

describe("rows of one request that are sampled in several ways", () => {
  const backend = new EngineBackend({
    ...{ model: POLICY, config: readConfig(POLICY), threads: 1, device: { kind: "cpu" }, slots: 4, positions: 512 },
    plan: () => ({ widens: false }),
  });
  before(async () => {
    const folder = mkdtempSync(join(tmpdir(), "longrun-engine-backend-"));
    cpSync(POLICY, folder, { recursive: true });
    await backend.load(folder, { policyVersion: 0, digest: "", kind: "full" });
  });
  after(() => backend.close());

  const row = (id: string, how: Partial<RowRequest>): RowRequest => ({
    ...{ id, prompt: [1, 2, 3], seed: 5, temperature: 1, topP: 1, maxTokens: 40, stopTokens: [] },
    ...how,
  });
  const asked = [
    row("drawn", {}),
    row("greedy", { temperature: 0 }),
    row("nucleus", { topP: 0.4, seed: 6 }),
    row("short", { maxTokens: 3 }),
    row("drawn again", { seed: 7 }),
  ];
  const generate = async (rows: RowRequest[]) => {
    const found: Row[] = [];
    await backend.generate(rows, new AbortController().signal, (each) => found.push(each));
    return found;
  };

  test("each is what it is alone", async () => {
    const alone = [];
    for (const each of asked) alone.push(...(await generate([each])));
    const together = await generate(asked);
    assert.deepEqual(
      together.toSorted((a, b) => a.id.localeCompare(b.id)),
      alone.toSorted((a, b) => a.id.localeCompare(b.id)),
    );
    assert.equal(new Set(alone.map(({ tokens }) => tokens.join())).size, asked.length);
  });

  test("one that cannot be generated ends the others: nothing is told after the answer has ended", async () => {
    const told: string[] = [];
    const rows = [...asked, row("too long", { maxTokens: 1_000_000 })];
    const signal = new AbortController().signal;
    await assert.rejects(
      backend.generate(rows, signal, ({ id }) => told.push(id)),
      { code: "request", message: /1000003 tokens/ },
    );
    const before = told.length;
    await generate([row("long", { maxTokens: 300 })]);
    assert.equal(told.length, before);
  });
});
