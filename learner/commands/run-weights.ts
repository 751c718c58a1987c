/** `longrun serve --run`: finds a run's newest weights. */
import { readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { policyFolder } from "../../crds/policy.ts";
import { parseResolved } from "../../crds/trainingrun.ts";
import { MappedWeights, modelIdentity, readAdapter, readConfig } from "../engine/index.ts";
import { checkpointFolders } from "../store/checkpoint-folders.ts";
import { InputError, readText } from "./command.ts";

export interface Weights {
  /** Name for clients. */
  readonly name: string;
  /** A model folder. */
  readonly model: string;
  /** A PEFT folder of a LoRA adapter for the model. */
  readonly adapter?: string | undefined;
  /** The run's `prompts.answerPrefix`. */
  readonly answerPrefix?: string | undefined;
}

/**
 * Returns the newest checkpoint whose weights can be read: a model folder, or the run's model and an adapter.
 *
 * @param onInvalid called with the reason why a newer checkpoint is skipped
 * @throws InputError for a folder that is no run's or has no such checkpoint
 */
export function newestWeights(run: string, onInvalid: (reason: string) => void): Weights {
  const source = join(run, "trainingrun.yaml");
  const { spec } = parseResolved(readText(source), source);
  const base = policyFolder(spec.model.policy, source, resolve(run));
  const { answerPrefix } = spec.prompts;
  const adapted = spec.model.adaptation.type === "LoRA";
  for (const { name: checkpoint } of checkpointFolders(run)) {
    const folder = join(run, "checkpoints", checkpoint);
    const policy = join(folder, "policy");
    const name = `${basename(resolve(run))}-${checkpoint}`;
    try {
      const state = JSON.parse(readFileSync(join(folder, "state.json"), "utf8")) as { base?: string };
      if (!adapted) {
        new MappedWeights(policy).checkFinite();
        return { name, model: policy, answerPrefix };
      }
      readAdapter(policy, readConfig(base));
      if (state.base === undefined || state.base === modelIdentity(new MappedWeights(base)))
        return { name, model: base, adapter: policy, answerPrefix };
      throw new InputError(`${base} is another model than the one that its adapter was trained with`);
    } catch (cause) {
      onInvalid(`checkpoint ${checkpoint} is not used: ${(cause as Error).message}`);
    }
  }
  throw new InputError(
    `--run ${run}: it has no checkpoint to serve; go on with the run, or serve its policy with --model`,
  );
}
