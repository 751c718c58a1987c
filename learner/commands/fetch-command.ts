/** `longrun model fetch`: a model of the Hugging Face hub, of S3 or of a registry becomes a folder that longrun can train. */
import { parseArgs } from "node:util";
import { fetchModel } from "../hub/fetch-model.ts";
import { useProxies } from "../hub/proxy.ts";
import { InputError, printLine } from "./command.ts";

const OPTIONS = {
  revision: { type: "string" },
  out: { type: "string" },
  json: { type: "boolean" },
} as const;

/** Prints the folder: the one line on stdout. */
export async function fetchCommand(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  const [repo, ...others] = positionals;
  if (repo === undefined || others.length > 0)
    throw new InputError(
      `give one repository, such as Qwen/Qwen2.5-3B-Instruct or s3://BUCKET/PREFIX, not ${positionals.length}`,
    );
  if (values.out === "") throw new InputError("--out is empty; give the folder to write");
  useProxies(process.env);
  const fetched = await fetchModel({
    ...{ repo, revision: values.revision, out: values.out },
    ...{ env: process.env, output: process.stderr },
  });
  if (values.json) printLine(fetched);
  else process.stdout.write(`${fetched.folder}\n`);
}
