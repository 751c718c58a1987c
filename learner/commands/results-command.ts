/** `longrun results`: a run's newest checkpoint, best program and report into a bucket of S3, and back. */
import type { Values } from "../../proto/command-line.ts";
import { useProxies } from "../hub/proxy.ts";
import { pullResults } from "../results/pull.ts";
import { pushResults } from "../results/push.ts";
import { bind, printLine, runCommands, whole } from "./command.ts";

const JSON_OPTION = { json: { help: "print one object in place of a line" } } as const;

const PUSH = {
  name: "longrun results push",
  description: `Copies the newest checkpoint, the best program, the metrics and the report of a run folder. It skips files that the
bucket has, and writes a manifest, results.json, last. A prefix holds the results of one run.`,
  arguments: { "<RUN>": "run folder", "<URL>": "s3://BUCKET/PREFIX" },
  options: {
    ...JSON_OPTION,
    "keep-last": { value: "N", help: "checkpoints that stay in the bucket", default: "3", as: whole(1) },
  },
} as const;
const PULL = {
  name: "longrun results pull",
  description: "Copies them back as a run folder. A manifest's initFrom.path can name its checkpoint.",
  arguments: { "<URL>": "s3://BUCKET/PREFIX" },
  options: {
    ...JSON_OPTION,
    out: { value: "DIR", help: "the folder: new, empty, or of an earlier pull", required: "the folder to write" },
  },
} as const;
export const RESULTS = {
  name: "longrun results",
  description: "copy a run's checkpoint and best program to S3, and back",
  options: {},
  commands: [PUSH, PULL],
  notes: `Server and credentials: the AWS SDK's variables (AWS_ENDPOINT_URL_S3, AWS_REGION, AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, AWS_PROFILE) or a workload identity.`,
  examples: [
    "longrun results push runs/short s3://results/team/short",
    "longrun results pull s3://results/team/short --out back",
  ],
} as const;

async function push({ json, keepLast }: Values<typeof PUSH.options>, directory: string, url: string): Promise<void> {
  const pushed = await pushResults({ url, directory, keepLast, ...surroundings() });
  const what = pushed.iteration === undefined ? "no checkpoint yet" : `checkpoint of iteration ${pushed.iteration}`;
  print(json, pushed, `${pushed.url}: ${what}`);
}

async function pull({ json, out }: Values<typeof PULL.options>, url: string): Promise<void> {
  const pulled = await pullResults({ url, directory: out, ...surroundings() });
  print(json, pulled, pulled.checkpoint ?? pulled.folder);
}

function surroundings() {
  useProxies(process.env);
  return { env: process.env, output: process.stderr };
}

function print(json: boolean, facts: object, line: string): void {
  if (json) printLine(facts);
  else process.stdout.write(`${line}\n`);
}

if (import.meta.main) await runCommands(RESULTS, [bind(PUSH, push), bind(PULL, pull)]);
