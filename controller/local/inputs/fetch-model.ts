/** Fetches the policy that `spec.model.source` names, by `longrun model fetch`. */
import type { TrainingRun } from "../../../crds/trainingrun.ts";
import { sourceName } from "../../operator/parts/inputs/model.ts";
import { askPart } from "../../part-process.ts";
import type { Steps } from "./prepare.ts";

/**
 * Replaces `model.source` by `model.policy` with the fetched folder in longrun's cache. The folder holds one commit, which a resumed run
 * keeps.
 *
 * @throws ControllerError with the fetch's own line; fetched parts stay for the next try
 */
export async function fetchPolicy({ spec }: TrainingRun, { parts, signal, env, step, progress }: Steps): Promise<void> {
  if (spec.model.source === undefined) return;
  const { huggingFace, s3 } = spec.model.source;
  const { repo = sourceName(spec.model.source), revision } = huggingFace ?? {};
  step(`Fetching ${repo}`);
  const variables = { HF_ENDPOINT: huggingFace?.endpoint, AWS_ENDPOINT_URL_S3: s3?.endpoint, AWS_REGION: s3?.region };
  const given = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== undefined));
  const { folder } = await askPart<{ folder: string }>(
    parts.model,
    ["fetch", repo, ...(revision ? ["--revision", revision] : []), "--json"],
    {
      signal,
      env: { ...env, ...given },
      onStderrLine: (line) => progress(`Fetching ${line}`),
    },
  );
  spec.model.policy = folder;
  delete spec.model.source;
}
