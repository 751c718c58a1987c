/** `--namespace-selector`: the controller serves the namespaces whose labels it selects, from the moment on that they have them. */
import { ControllerError } from "../../../errors.ts";
import type { ApiClient } from "../api-client.ts";
import { NAMESPACE } from "../resources.ts";
import { Reflector, type ReflectorLog } from "./reflector.ts";

interface SelectedOptions {
  client: ApiClient;
  /** As kubectl takes it, such as `longrun=yes,team in (a, b)`. */
  selector: string;
  /** A namespace is served from now on, or no longer. */
  onChange: (namespace: string) => void;
  log: ReflectorLog;
}

export class SelectedNamespaces {
  readonly #reflector: Reflector;

  constructor({ client, selector, onChange, log }: SelectedOptions) {
    this.#reflector = new Reflector({
      client,
      resource: NAMESPACE,
      labelSelector: selector,
      log,
      onChange: (namespace, now, before) => {
        if ((now === undefined) !== (before === undefined)) onChange(namespace);
      },
    });
  }

  has(namespace: string): boolean {
    return this.#reflector.get(namespace) !== undefined;
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#reflector.run(signal);
  }

  get synced(): Promise<void> {
    return this.#reflector.synced;
  }

  /** Returns, for people, why the namespaces are not known; empty: they are. */
  faults(): string[] {
    if (this.#reflector.hasSynced) return [];
    return [
      "namespaces are not listed yet: the controller needs the right to list and watch them (watch.namespaceSelector)",
    ];
  }
}

const KEY = "[A-Za-z0-9][-A-Za-z0-9_./]*";
const VALUE = "[A-Za-z0-9]?[-A-Za-z0-9_.]*";
const REQUIREMENT = `(!?${KEY}|${KEY} *(=|==|!=) *${VALUE}|${KEY} +(in|notin) *[(] *${VALUE}( *, *${VALUE})* *[)])`;
const SELECTOR = new RegExp(`^ *${REQUIREMENT} *(, *${REQUIREMENT} *)*$`);

/** @throws ControllerError `input` that names the option */
export function parseSelector(text: string, option: string): string {
  if (SELECTOR.test(text)) return text;
  throw new ControllerError(
    "input",
    `${option} is ${JSON.stringify(text)}: write it as kubectl takes it, such as longrun=yes or "team in (a, b)"`,
  );
}
