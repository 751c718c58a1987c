/** Tests which models and settings a fetch refuses, and with which message. */
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fetchFrom, POLICY, root, type Wish } from "./fetch.fixture.ts";
import { HubServer } from "./hub-server.fixture.ts";

const FILE = path.join(root, "a file");
fs.writeFileSync(FILE, "");
const PRIVATE = "that is public; check the name, or set HF_TOKEN (<hub>/settings/tokens) for a private one";
const refusals: [what: string, wish: Wish, change: (server: HubServer) => void, code: string, message: string][] = [
  ["no such repository", { repo: "acme/none" }, () => {}, "input", `<hub> has no model acme/none ${PRIVATE}`],
  [
    "no such repository for a token",
    { repo: "acme/none", env: { HF_TOKEN: "hf_good" } },
    (server) => {
      server.token = "hf_good";
    },
    "input",
    "<hub> has no model acme/none that the token in HF_TOKEN may read; check the name",
  ],
  [
    "no such revision",
    { revision: "v9" },
    () => {},
    "input",
    "acme/model has no revision v9; give a branch, tag or commit of <hub>/acme/model/commits/main",
  ],
  [
    "a token that the hub does not know",
    { env: { HF_TOKEN: "hf_old" } },
    (server) => {
      server.token = "hf_good";
    },
    "access",
    "<hub> refuses the token in HF_TOKEN (Invalid credentials in Authorization header); make a new one at <hub>/settings/tokens",
  ],
  [
    "a gated model",
    {},
    (server) => {
      server.gated = true;
    },
    "access",
    "acme/model is gated: accept its licence at <hub>/acme/model and set HF_TOKEN to a token of that account (<hub>/settings/tokens)",
  ],
  [
    "a gated model, whose licence the account has not accepted",
    { env: { HF_TOKEN: "hf_other" } },
    (server) => {
      server.gated = true;
    },
    "access",
    "acme/model is gated: accept its licence at <hub>/acme/model with the account of HF_TOKEN, which has no access yet",
  ],
  [
    "a model without safetensors",
    {},
    (server) => {
      server.files.delete("model.safetensors");
      server.files.set("pytorch_model.bin", Buffer.from("x"));
    },
    "input",
    "acme/model has no model.safetensors, only pytorch_model.bin; longrun reads safetensors alone: fetch a model with it",
  ],
  [
    "a model without tokenizer.json",
    {},
    (server) => {
      server.files.delete("tokenizer.json");
    },
    "input",
    "acme/model has no tokenizer.json, which training needs; fetch a model with it",
  ],
  [
    "another architecture",
    {},
    (server) => {
      server.files.set("config.json", Buffer.from('{"model_type":"gemma"}'));
    },
    "input",
    'longrun cannot train acme/model: config.json: model_type is "gemma"; supported are qwen2, qwen3 and llama',
  ],
  [
    "no hub at all",
    {},
    (server) => {
      server.faults.push((_, response) => Boolean(response.end("<html>")));
    },
    "input",
    "<hub> does not answer as the Hugging Face hub does; check HF_ENDPOINT, or unset it for https://huggingface.co",
  ],
  [
    "a name that is none",
    { repo: "../model" },
    () => {},
    "input",
    "../model is no name of a repository; give OWNER/NAME, such as Qwen/Qwen2.5-3B-Instruct, s3://BUCKET/PREFIX or oci://HOST/REPOSITORY:TAG",
  ],
  [
    "a revision that is none",
    { revision: "a/../b" },
    () => {},
    "input",
    "--revision is a/../b; give a branch, tag or commit",
  ],
  [
    "an endpoint that is none",
    { env: { HF_ENDPOINT: "huggingface.co" } },
    () => {},
    "input",
    "HF_ENDPOINT is not an address such as https://huggingface.co; correct or unset it",
  ],
  [
    "a folder of something else",
    { out: POLICY },
    () => {},
    "input",
    `--out ${POLICY} has files that no fetch has brought; give a new or empty folder`,
  ],
  [
    "a file in place of a folder",
    { out: FILE },
    () => {},
    "input",
    `--out ${FILE} is a file; give a new or empty folder`,
  ],
];
for (const [what, wish, change, code, message] of refusals)
  test(`${what} is refused in one line, at once`, async () => {
    await using server = await HubServer.of(POLICY);
    change(server);
    const cache = path.join(root, `refused ${what}`);
    await assert.rejects(fetchFrom(server, wish, cache), {
      ...{ name: "TransferError", code },
      message: message.replaceAll("<hub>", server.endpoint),
    });
    const left = fs.existsSync(cache) ? fs.globSync("models/*/*/*/*", { cwd: cache }) : [];
    assert.deepEqual(
      left.filter((name) => name.endsWith("safetensors")),
      [],
    );
  });

test("https:// of a server without TLS is refused in one line, at once", async () => {
  await using server = await HubServer.of(POLICY);
  const env = { HF_ENDPOINT: server.endpoint.replace("http:", "https:") };
  const { host } = new URL(server.endpoint);
  const remedy = "correct the port, or write http:// in the address if the server has no TLS";
  await assert.rejects(fetchFrom(server, { env }), {
    code: "input",
    message: `${host} does not answer with TLS; ${remedy}`,
  });
});
