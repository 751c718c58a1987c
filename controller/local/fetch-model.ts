/** Fetches the policy that `spec.model.source` names, by `longrun model fetch`. */
import type { TrainingRun } from "../../crds/trainingrun.ts";
import { askPart } from "../part-process.ts";
import type { Steps } from "./prepare.ts";

/**
 * Puts the folder in longrun's cache into `model.policy`, in the place of `model.source`: the folder is of one commit, which a
 * resumed run goes on with.
 *
 * @throws ControllerError with the fetch's own line; what has come stays for the next try
 */
export async function fetchPolicy({ spec }: TrainingRun, { parts, signal, env, step, progress }: Steps): Promise<void> {
  if (spec.model.source === undefined) return;
  const { repo, revision, endpoint } = spec.model.source.huggingFace;
  step(`Fetching ${repo}`);
  const { folder } = await askPart<{ folder: string }>(parts.model, ["fetch", repo, "--revision", revision, "--json"], {
    signal,
    env: { ...env, ...(endpoint !== undefined && { HF_ENDPOINT: endpoint }) },
    onStderrLine: (line) => progress(`Fetching ${line}`),
  });
  spec.model.policy = folder;
  delete spec.model.source;
}
