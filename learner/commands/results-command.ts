/** `longrun results`: a run's newest checkpoint, best program and report into a bucket of S3, and back. */
import { parseArgs } from "node:util";
import { useProxies } from "../hub/proxy.ts";
import { pullResults } from "../results/pull.ts";
import { pushResults } from "../results/push.ts";
import { InputError, printLine, required, runCommand, unknownWord, wholeNumber } from "./command.ts";

const USAGE = `Usage: longrun results push DIR s3://BUCKET/PREFIX [--keep-last N] [--json]
       longrun results pull s3://BUCKET/PREFIX --out DIR [--json]

push copies the newest checkpoint, the best program, the metrics and the report of a run folder. It skips files that the
bucket has, and writes a manifest, results.json, last. A prefix holds the results of one run.
  --keep-last N   checkpoints that stay in the bucket (default 3)
pull copies them back as a run folder. A manifest's initFrom.path can name its checkpoint.
  --out DIR       the folder: new, empty, or of an earlier pull
  --json          prints one object in place of a line

Server and credentials: the AWS SDK's variables (AWS_ENDPOINT_URL_S3, AWS_REGION, AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, AWS_PROFILE) or a workload identity. Exit status: 0 done, 1 failed, 2 bad input.`;

const OPTIONS = {
  out: { type: "string" },
  "keep-last": { type: "string", default: "3" },
  json: { type: "boolean" },
} as const;

async function results(): Promise<void> {
  const [word, ...args] = process.argv.slice(2);
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  useProxies(process.env);
  const around = { env: process.env, output: process.stderr };
  if (word === "push") {
    const [directory, url] = exactly(positionals, 2, "a run folder and s3://BUCKET/PREFIX");
    const keepLast = wholeNumber(values["keep-last"], "--keep-last", 1);
    const pushed = await pushResults({ url: url!, directory: directory!, keepLast, ...around });
    const what = pushed.iteration === undefined ? "no checkpoint yet" : `checkpoint of iteration ${pushed.iteration}`;
    print(values.json, pushed, `${pushed.url}: ${what}`);
  } else if (word === "pull") {
    const [url] = exactly(positionals, 1, "s3://BUCKET/PREFIX");
    const directory = required(values.out, "--out", "the folder to write");
    const pulled = await pullResults({ url: url!, directory, ...around });
    print(values.json, pulled, pulled.checkpoint ?? pulled.folder);
  } else throw unknownWord("results", word, "push or pull", USAGE);
}

function exactly(positionals: string[], count: number, what: string): string[] {
  if (positionals.length === count) return positionals;
  throw new InputError(`give ${what}, not ${positionals.length} arguments`);
}

function print(json: boolean | undefined, facts: object, line: string): void {
  if (json) printLine(facts);
  else process.stdout.write(`${line}\n`);
}

await runCommand(USAGE, results);
