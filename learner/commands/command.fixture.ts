/** What tests of the learner's commands share: a temporary folder, models, and a call of a command as a process. */
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

export const root = fs.mkdtempSync(path.join(os.tmpdir(), "model-command-"));
after(() => fs.rmSync(root, { recursive: true }));
export const file = path.join(root, "lines.jsonl");
export const fixture = (name: string) => fileURLToPath(new URL(`../../test/fixtures/${name}`, import.meta.url));
export const LLAMA = fixture("generation/llama"); // without a tokenizer
export const QWEN = fixture("qwen2.5/0.5B"); // config.json alone
export const POLICY = fileURLToPath(new URL("../../manifests/quickstart/policy", import.meta.url));

/** Folder of a program that replaces nvidia-smi and creates the file ASKED when it is called. */
const BIN = path.join(root, "bin");
export const ASKED = path.join(root, "nvidia-smi was asked");
fs.mkdirSync(BIN);
fs.writeFileSync(path.join(BIN, "nvidia-smi"), `#!/bin/sh\necho 9000\n: > "${ASKED}"\n`, { mode: 0o755 });

export function longrun(command: string, ...args: string[]) {
  const folder = command === "model" ? "./" : ".";
  const program = fileURLToPath(new URL(`${folder}/${command}-command.ts`, import.meta.url));
  const env = { ...process.env, PATH: `${BIN}:${process.env.PATH}` };
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: "utf8", env });
  return { status, stderr, lines: stdout.trimEnd().split("\n") };
}

export function write(...lines: unknown[]): string {
  fs.writeFileSync(file, lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join(""));
  return file;
}
