/** Tiny models for tests of the engine. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after } from "node:test";
import { configJson, type ModelConfig } from "./model/config.ts";
import { writeModelFolder } from "./model/folder.ts";
import { initialWeights } from "./model/weights.ts";

/** Makes a folder that is deleted after the tests, and in it a model folder with random weights. Returns the paths of both. */
export function tinyModel(config: ModelConfig): { folder: string; model: string } {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "engine-"));
  after(() => fs.rmSync(folder, { recursive: true }));
  const model = path.join(folder, "model");
  fs.mkdirSync(model);
  fs.writeFileSync(path.join(model, "config.json"), JSON.stringify(configJson(config, { eos_token_id: 0 })));
  writeModelFolder(model, model, config, initialWeights(config, 3));
  return { folder, model };
}
