/** The options of `longrun serve`. */
import type { Values } from "../../proto/command-line.ts";
import { DEFAULT_SLOTS } from "../engine/index.ts";
import { LIMITS } from "../serve/limits.ts";
import { MODEL_OPTIONS, whole } from "./command.ts";
import { CONTEXT } from "./serving.ts";

export const GENERATOR_DEFAULTS = { port: 8443, probePort: 8081, drainSeconds: 60 };

const GENERATOR_OPTIONS = {
  tls: {
    value: "DIR",
    help: "folder with tls.crt, tls.key and ca.crt of the run; --host is then every address of the machine by default",
  },
  "probe-port": {
    value: "N",
    help: "/health, /ready and /metrics without TLS; 0 is any free one",
    default: String(GENERATOR_DEFAULTS.probePort),
    as: whole(0),
  },
  "drain-seconds": {
    value: "N",
    help: "time that running rows have after SIGTERM",
    default: String(GENERATOR_DEFAULTS.drainSeconds),
    as: whole(0),
  },
  vllm: { value: "URL", help: "with --tls: a vLLM server on this machine" },
  "adapter-folder": { value: "DIR", help: "with --vllm: a folder that vLLM can read" },
  "model-name": { value: "NAME", help: "with --vllm: vLLM's --served-model-name" },
} as const;

export const SERVE = {
  name: "longrun serve",
  description:
    "serve a policy behind an HTTP API like OpenAI's: a model, a model with a LoRA adapter, or the newest checkpoint of a run",
  options: {
    ...MODEL_OPTIONS,
    run: { value: "RUN", help: "run folder, in place of --model and --adapter" },
    host: {
      value: "ADDRESS",
      help: "address to listen on (default: 127.0.0.1; any other address needs a key, or --no-key)",
    },
    port: {
      value: "N",
      help: `0 is any free one (default: 8000, with --tls ${GENERATOR_DEFAULTS.port})`,
      as: whole(0),
    },
    "api-key": {
      value: "KEY",
      help: 'key that clients send as "Authorization: Bearer KEY". Other users of this machine can read a command line: prefer the variable LONGRUN_API_KEY',
    },
    "no-key": { help: "serve without a key" },
    "served-model-name": { value: "NAME", help: "the model's name in the API (default: the folder's)" },
    "answer-prefix": {
      value: "TEXT",
      help: "text that every answer of a chat begins with (default: the run's prompts.answerPrefix; '' for none)",
    },
    slots: {
      value: "N",
      help: "answers that are generated side by side; further ones wait",
      default: String(DEFAULT_SLOTS),
      as: whole(1),
    },
    context: {
      value: "TOKENS",
      help: `most tokens of a prompt and its answer (default: the model's, ${CONTEXT} at most)`,
      as: whole(2),
    },
    "max-waiting": {
      value: "N",
      help: "answers that wait, before requests are refused with status 429",
      default: String(LIMITS.waiting),
      as: whole(0),
    },
    ...GENERATOR_OPTIONS,
  },
  notes: `The API: /v1/chat/completions, /v1/completions, /v1/models, /health, /metrics.

With --tls it is a generator instead, which writes solutions for the learner of a run and for nobody else
(learner/generators/README.md). --vllm forwards to a vLLM server on this machine; give vLLM's slots and device.`,
  examples: [
    "longrun serve --model quickstart",
    "longrun serve --run runs/short --port 9000",
    "longrun serve --tls certificates/generator --model quickstart",
  ],
} as const;
export type ServeOptions = Values<typeof SERVE.options>;
