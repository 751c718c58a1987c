/** The TrainingRuntimes of the cluster, as a watch shows them. */
import type { TrainingRuntime } from "../../../crds/runtime.ts";
import type { ApiClient } from "../kube/api-client.ts";
import { TRAINING_RUNTIME } from "../kube/resources.ts";
import { Reflector, type ReflectorLog } from "../kube/runtime/reflector.ts";
import type { KubeObject } from "../kube/types.ts";

interface RuntimesOptions {
  client: ApiClient;
  /** A runtime appears, changes or is deleted. */
  onChange: (name: string) => void;
  onFault: (kind: "list" | "watch" | "handler") => void;
  log: ReflectorLog;
}

/** Statuses with which an API server answers a controller that may not read runtimes, and without their CRD. */
const CANNOT_READ = [403, 404];

export class Runtimes {
  readonly #reflector: Reflector<KubeObject & TrainingRuntime>;
  readonly #settled = Promise.withResolvers<void>();

  constructor({ client, onChange, onFault, log }: RuntimesOptions) {
    this.#reflector = new Reflector({
      client,
      resource: TRAINING_RUNTIME,
      log,
      onFault,
      refusedBy: CANNOT_READ,
      onChange: (name) => onChange(name),
      onState: () => this.#settled.resolve(),
    });
  }

  get(name: string): TrainingRuntime | undefined {
    return this.#reflector.get(name);
  }

  /** Why the API server does not let the controller read runtimes; undefined: it does. Runs without a runtime do without. */
  get refusal(): string | undefined {
    return this.#reflector.refusal;
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#reflector.run(signal);
  }

  /** Resolves when the runtimes are listed, or the API server refuses the list. */
  get settled(): Promise<void> {
    return this.#settled.promise;
  }
}
