/** Folders that are broken or made to do harm: each is refused with one clear line, and nothing is read out of bounds. */
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, describe, it } from "node:test";
import { logProbsOf } from "../log-probs.fixture.ts";
import { configJson, parseConfig } from "./config.ts";
import { convertFolder } from "./convert.ts";
import { saveWeights } from "./files.ts";
import { readModelFolder } from "./folder.fixture.ts";
import { Generator } from "./generate.ts";
import { writeHollowModel } from "./hollow.fixture.ts";
import { MappedWeights } from "./mapped.ts";
import { initialWeights, parameters } from "./weights.ts";

const root = fs.mkdtempSync(path.join(os.tmpdir(), "hostile-"));
after(() => fs.rmSync(root, { recursive: true }));
let folders = 0;

const config = parseConfig({
  model_type: "llama",
  vocab_size: 24,
  hidden_size: 8,
  intermediate_size: 8,
  num_hidden_layers: 1,
  num_attention_heads: 2,
});
const WEIGHTS = "model.safetensors";
const INDEX = "model.safetensors.index.json";
const NORM = "model.norm.weight";

function newFolder(shardBytes?: number): string {
  const folder = path.join(root, String(folders++));
  fs.mkdirSync(folder);
  put(folder, "config.json", configJson(config));
  const weights = initialWeights(config, 1);
  const tensors = parameters(config).map(({ name, shape }) => ({ name, shape, read: () => weights.get(name)! }));
  saveWeights(folder, tensors, { shardBytes });
  return folder;
}

function put(folder: string, name: string, json: unknown): void {
  fs.writeFileSync(path.join(folder, name), typeof json === "string" ? json : JSON.stringify(json));
}

function get(folder: string, name: string) {
  return JSON.parse(fs.readFileSync(path.join(folder, name), "utf8"));
}

type Header = Record<string, { dtype: string; shape: number[]; data_offsets: [number, number] }>;

/** Writes the header of the weights anew, the bytes after it as they were. */
function edit(folder: string, change: (header: Header) => unknown, file = WEIGHTS): void {
  const bytes = fs.readFileSync(path.join(folder, file));
  const length = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + length).toString()) as Header;
  const changed = change(header) ?? header;
  const text = Buffer.from(typeof changed === "string" ? changed : JSON.stringify(changed));
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(BigInt(text.length));
  fs.writeFileSync(path.join(folder, file), Buffer.concat([prefix, text, bytes.subarray(8 + length)]));
}

/** Changes the length of the file; new bytes are zeros. */
function cut(folder: string, bytes: number): void {
  const file = path.join(folder, WEIGHTS);
  fs.truncateSync(file, fs.statSync(file).size + bytes);
}

function claim(folder: string, bytes: bigint): void {
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(bytes);
  const descriptor = fs.openSync(path.join(folder, WEIGHTS), "r+");
  fs.writeSync(descriptor, prefix, 0, 8, 0);
  fs.closeSync(descriptor);
}

const LFS = `version https://git-lfs.github.com/spec/v1\noid sha256:${"a".repeat(64)}\nsize 988097824\n`;
const CASES: readonly [what: string, damage: (folder: string) => void, message: RegExp][] = [
  ["no weights", (f) => fs.rmSync(path.join(f, WEIGHTS)), /cannot open .*model.safetensors, and there is no .*index/],
  ["weights that are a folder", (f) => swap(f, () => fs.mkdirSync(path.join(f, WEIGHTS))), /not a regular file/],
  ["empty weights", (f) => put(f, WEIGHTS, ""), /has 0 bytes/],
  [
    "a pointer of Git LFS as weights",
    (f) => put(f, WEIGHTS, LFS),
    /model.safetensors is a pointer of Git LFS .*git lfs pull/,
  ],
  ["a pointer of Git LFS as config.json", (f) => put(f, "config.json", LFS), /config.json is a pointer of Git LFS/],
  [
    "a pointer of Git LFS as the index",
    (f) => index(f, () => LFS),
    /index.json is a pointer of Git LFS and not the file itself; run `git lfs install`/,
  ],
  ["weights cut by a byte", (f) => cut(f, -1), /tensors end at byte \d+, the file at \d+; it may be cut off/],
  [
    "weights cut in the header",
    (f) => fs.truncateSync(path.join(f, WEIGHTS), 100),
    /header claims \d+ bytes, the file/,
  ],
  ["bytes after the tensors", (f) => cut(f, 4), /tensors end at byte/],
  ["a header longer than the file", (f) => claim(f, 1_000_000n), /header claims 1000000 bytes/],
  ["a header of 2^64 - 1 bytes", (f) => claim(f, 2n ** 64n - 1n), /header claims 18446744073709552000 bytes/],
  ["a header that is cut short", (f) => claim(f, 10n), /header is not JSON/],
  ["a header of two lines", (f) => edit(f, () => "x\ny"), /header is not JSON \(Unexpected token 'x', "x\\u000ay" is/],
  [
    "a tensor whose name writes to the terminal",
    (f) =>
      edit(f, (h) =>
        Object.assign(h, { "a\u001b[2Jb\u009bc\nd": { dtype: "F32", shape: [0], data_offsets: endOf(h) } }),
      ),
    /unknown parameter a\\u001b\[2Jb\\u009bc\\u000ad;/,
  ],
  ["a header with a name twice", (f) => edit(f, (h) => twice(h)), new RegExp(`${NORM} is there twice`)],
  ["a header nested deeply", (f) => edit(f, () => `${"[".repeat(1e5)}`), /header is not JSON/],
  ["offsets past the file", (f) => edit(f, (h) => move(h, 1e9)), /begins at byte \d+, but \d+ is where/],
  ["offsets past 2^53", (f) => edit(f, (h) => move(h, 2 ** 60)), /data_offsets \[11529215/],
  ["tensors that overlap", (f) => edit(f, (h) => move(h, -4)), /begins at byte \d+, but \d+ is where/],
  ["a shape larger than its bytes", (f) => edit(f, (h) => reshaped(h, [9])), /F32 \[9\], which is 36 bytes, but .* 32/],
  ["a shape that overflows", (f) => edit(f, (h) => reshaped(h, [2 ** 40, 2 ** 40])), /but its data_offsets span 32/],
  ["a negative shape", (f) => edit(f, (h) => reshaped(h, [-8])), /has shape \[-8\]/],
  [
    "a dtype larger than its bytes",
    (f) => edit(f, (h) => typed(h, "F64")),
    /dtype "F64"; supported are F32, F16, BF16/,
  ],
  ["a dtype smaller than its bytes", (f) => edit(f, (h) => typed(h, "BF16")), /is BF16 \[8\], which is 16 bytes/],
  ["quantised weights", (f) => edit(f, (h) => typed(h, "F8_E4M3")), /dtype "F8_E4M3"/],
  ["a tensor that is null", (f) => edit(f, (h) => Object.assign(h, { x: null })), /x has dtype undefined/],
  ["a tensor called __proto__", (f) => edit(f, (h) => proto(h)), /unknown parameter __proto__/],
  [
    "a missing tensor",
    (f) => edit(f, (h) => renamed(h, "model.layers.0.rotary_emb.inv_freq")),
    /norm.weight is missing/,
  ],
  [
    "another name",
    (f) => edit(f, (h) => renamed(h, "transformer.norm.weight")),
    /parameter model.norm.weight is missing/,
  ],
  [
    "another shape",
    (f) => edit(f, (h) => reshaped(h, [2, 4])),
    /norm.weight is \[2,4\], but config.json asks for \[8\]/,
  ],
  [
    "a larger vocabulary in config.json",
    (f) => change(f, { vocab_size: 25 }),
    /is \[24,8\], but config.json asks for \[25,8\]/,
  ],
  [
    "more layers in config.json",
    (f) => change(f, { num_hidden_layers: 2 }),
    /model.layers.1.input_layernorm.weight is missing/,
  ],
  ["fewer layers in config.json", (f) => layers(f), /unknown parameter model.layers.0/],
  ["biases that config.json does not say", (f) => change(f, { attention_bias: true }), /q_proj.bias is missing/],
  [
    "1e9 layers in config.json",
    (f) => change(f, { num_hidden_layers: 1e9 }),
    /num_hidden_layers is 1000000000; expected at most/,
  ],
  ["an index that is no JSON", (f) => index(f, () => "{"), /index.json is not usable JSON/],
  ["an index without a map", (f) => index(f, () => ({})), /weight_map is not a map/],
  ["an empty index", (f) => index(f, () => ({ weight_map: {} })), /weight_map is not a map/],
  ["an index with a list", (f) => index(f, () => ({ weight_map: ["a"] })), /weight_map is not a map/],
  [
    "an index that leads out",
    (f) => mapped(f, () => "../x.safetensors"),
    /"..\/x.safetensors" is not a plain file name/,
  ],
  ["an index with a full path", (f) => mapped(f, () => "/etc/passwd"), /"\/etc\/passwd" is not a plain file name/],
  ["an index to the folder above", (f) => mapped(f, () => ".."), /".." is not a plain file name/],
  ["an index to this folder", (f) => mapped(f, () => "."), /is not a regular file|is not a plain file name/],
  ["an index with a number", (f) => mapped(f, () => 7), /shard 7 is not a plain file name/],
  ["an index to a file with a zero byte", (f) => mapped(f, () => "a\0b"), /cannot open|not a plain file name/],
  ["an index to a missing shard", (f) => mapped(f, () => "none.safetensors"), /cannot open .*none.safetensors/],
  [
    "an index that names another shard",
    (f) => mapped(f, otherShard),
    /norm.weight is not in .*, where the index says it is/,
  ],
  ["a tensor in two shards", (f) => inTwo(f), /is both in .* and /],
];

describe("a model folder is refused that has", () => {
  for (const [what, damage, message] of CASES) {
    it(what, () => {
      const folder = newFolder();
      damage(folder);
      const refused = (error: Error) => {
        assert.equal(error.name, "ModelError");
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /\p{Cc}/u);
        return true;
      };
      assert.throws(() => new MappedWeights(folder), refused);
      assert.throws(() => readModelFolder(folder), refused);
    });
  }
});

describe("weights that are not finite", () => {
  for (const name of [NORM, "model.layers.0.mlp.up_proj.weight", "lm_head.weight"]) {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
      it(`are refused with the value and the name: ${value} in ${name}`, async () => {
        const folder = newFolder();
        edit(folder, () => undefined); // a header that is not aligned
        poison(folder, name, 3, value);
        const message = new RegExp(`${name} holds ${value} at index 3; the weights are damaged`);
        const weights = new MappedWeights(folder);
        await assert.rejects(logProbsOf(folder, [[1, 2, 3]]), { name: "ModelError", message });
        const generator = new Generator(config, { threads: 1 });
        const options = { seeds: [1], temperature: 1, topP: 1, maxNewTokens: 2, eosIds: [] };
        await assert.rejects(generator.generate({ base: weights }, [Int32Array.of(1, 2)], options), { message });
        assert.throws(() => readModelFolder(folder), { name: "ModelError", message });
        assert.throws(() => weights.checkFinite(), { message });
        assert.throws(() => convertFolder(folder, `${folder}-converted`, {}), { message });
        await generator.release();
      });
    }
  }
});

it("log-probs ignore weights that are not finite if no token reads them", async () => {
  const folder = newFolder();
  poison(folder, "model.embed_tokens.weight", 20 * config.hiddenSize, Number.NaN);
  const [logProbs] = await logProbsOf(folder, [[1, 2, 3]]);
  assert.ok(logProbs!.length === 2 && logProbs!.every(Number.isFinite));
});

it("a weight that is not finite is found in every piece of a matrix", () => {
  const folder = path.join(root, String(folders++));
  const large = { ...config, vocabSize: 2 ** 18 + 3, hiddenSize: 32 };
  writeHollowModel(folder, large);
  const at = 2 ** 22 + 5; // in the second piece of the embedding
  const file = path.join(folder, "model.safetensors");
  const { offset } = new MappedWeights(folder).tensors[0]!;
  const handle = fs.openSync(file, "r+");
  fs.writeSync(handle, Uint8Array.of(0xc0, 0x7f), 0, 2, offset + 2 * at);
  fs.closeSync(handle);
  const message = new RegExp(`model.embed_tokens.weight holds NaN at index ${at}; the weights are damaged`);
  assert.throws(() => new MappedWeights(folder).checkFinite(), { message });
});

function swap(folder: string, make: () => void): void {
  fs.rmSync(path.join(folder, WEIGHTS));
  make();
}

function twice(header: Header): string {
  return JSON.stringify(header).replace(/}$/, `,${JSON.stringify(NORM)}:${JSON.stringify(header[NORM])}}`);
}

function move(header: Header, by: number): void {
  header[NORM].data_offsets = header[NORM].data_offsets.map((offset) => offset + by) as [number, number];
}

function reshaped(header: Header, shape: number[]): void {
  header[NORM].shape = shape;
}

function typed(header: Header, dtype: string): void {
  header[NORM].dtype = dtype;
}

function renamed(header: Header, name: string): Header {
  return Object.fromEntries(Object.entries(header).map(([key, value]) => [key === NORM ? name : key, value]));
}

/** An empty tensor at the end, whose name JSON.parse keeps but an assignment would lose. */
function proto(header: Header): string {
  const end = Math.max(
    ...Object.entries(header).map(([name, { data_offsets }]) => (name === "__metadata__" ? 0 : data_offsets[1])),
  );
  const entry = { dtype: "F32", shape: [0], data_offsets: [end, end] };
  return JSON.stringify(header).replace(/}$/, `,"__proto__":${JSON.stringify(entry)}}`);
}

function change(folder: string, fields: Record<string, unknown>): void {
  put(folder, "config.json", { ...get(folder, "config.json"), ...fields });
}

/** A second layer's name for the first, and a config.json that asks for none of it. */
function layers(folder: string): void {
  edit(folder, (header) =>
    Object.assign(header, {
      "model.layers.0.self_attn.q_norm.weight": { dtype: "F32", shape: [0], data_offsets: endOf(header) },
    }),
  );
}

function endOf(header: Header): [number, number] {
  const end = Math.max(
    ...Object.entries(header).map(([name, value]) => (name === "__metadata__" ? 0 : value.data_offsets[1])),
  );
  return [end, end];
}

/** Shards in place of one file, and their index changed. */
function index(folder: string, make: (index: { weight_map: Record<string, unknown> }) => unknown): void {
  fs.cpSync(newFolder(600), folder, { recursive: true });
  fs.rmSync(path.join(folder, WEIGHTS));
  put(folder, INDEX, make(get(folder, INDEX)));
}

function mapped(folder: string, shard: (map: Record<string, unknown>) => unknown): void {
  index(folder, ({ weight_map }) => ({ weight_map: { ...weight_map, [NORM]: shard(weight_map) } }));
}

function otherShard(map: Record<string, unknown>): unknown {
  return Object.values(map).find((shard) => shard !== map[NORM]);
}

function inTwo(folder: string): void {
  index(folder, (json) => json);
  const shards = fs.readdirSync(folder).filter((name) => name.endsWith(".safetensors"));
  const { weight_map } = get(folder, INDEX);
  const other = shards.find((shard) => shard !== weight_map[NORM])!;
  edit(folder, (h) => Object.assign(h, { [NORM]: { dtype: "F32", shape: [0], data_offsets: endOf(h) } }), other);
}

function poison(folder: string, name: string, at: number, value: number): void {
  const stored = new MappedWeights(folder).tensors.find((tensor) => tensor.name === name)!;
  const descriptor = fs.openSync(stored.file, "r+");
  fs.writeSync(descriptor, new Uint8Array(Float32Array.of(value).buffer), 0, 4, stored.offset + 4 * at);
  fs.closeSync(descriptor);
}
