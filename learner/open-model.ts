/** Opens what writes a folder's solutions: the policy that a run trains, policies that are evaluated or search, or an endpoint. */
import { join } from "node:path";
import { policyFolder } from "../crds/policy.ts";
import type { SolveSettings } from "../proto/solve.ts";
import type { RunContext } from "./context.ts";
import { readTokenizer, turnEndWarning } from "./engine/index.ts";
import { type Policies, readPolicies } from "./evaluation/policies.ts";
import { loadEvaluated, loadPolicy } from "./load-policy.ts";
import { logNotice } from "./log.ts";
import type { Process } from "./process.ts";
import { openEndpoint } from "./solving.ts";
import { readWarmStart } from "./warm-start.ts";

export type OpenModel = Awaited<ReturnType<typeof openModel>>;

/** @param restarted the folder's work has begun before */
export async function openModel(it: Process, solve: SolveSettings | undefined, restarted: boolean) {
  if (solve?.endpoint) {
    const none = { policy: undefined, policies: undefined, warmStartData: undefined };
    return { ...(await openEndpoint(it, solve.endpoint)), ...none };
  }
  const { options, directory, spec, log } = it;
  const policy = policyFolder(spec.model.policy, join(directory, "trainingrun.yaml"), options.modelDir);
  const tokenizer = readTokenizer(policy);
  const cut = turnEndWarning(policy, tokenizer);
  if (cut !== undefined) logNotice(log, cut);
  const policies: Policies | undefined = solve?.policy ? { model: solve.policy } : readPolicies(directory);
  const warmStartData = policies ? undefined : readWarmStart(directory, spec, policy, tokenizer);
  const loaded = policies ? await loadEvaluated(it, policy, policies) : await loadPolicy(it, policy, restarted);
  if (solve?.policy?.checkpoint !== undefined) await loaded.load!(solve.policy.checkpoint);
  const state: RunContext["progress"]["state"] = {
    ...loaded.state,
    ...(solve && { iteration: solve.policy!.iteration }),
  };
  return {
    ...loaded,
    state,
    policy,
    policies,
    warmStartData,
    writers: undefined,
    endpoint: undefined,
    encode: tokenizer.encodeChat.bind(tokenizer),
    decode: (tokens: Int32Array) => tokenizer.decode(tokens),
  };
}
