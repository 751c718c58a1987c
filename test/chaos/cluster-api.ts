/** JSON requests to the API server, as a cluster's administrator. */

import { loadConfig } from "../../controller/operator/kube/kubeconfig.ts";
import type { Deployment, Pod, Service } from "../../controller/operator/kube/resources.ts";
import { Transport } from "../../controller/operator/kube/transport.ts";
import type { TrainingRunObject } from "../e2e/kubectl.ts";

export const NAMESPACE = "training";
export const SYSTEM = "longrun-system";
const TIMEOUT_SECONDS = 10;

type Child = Pick<Deployment, "apiVersion" | "kind" | "metadata">;
/** Kinds of a run's children that come back when they are deleted. The volume is not among them: its data would be gone. */
export const CHILDREN = {
  deployments: "/apis/apps/v1",
  jobs: "/apis/batch/v1",
  services: "/api/v1",
  configmaps: "/api/v1",
  secrets: "/api/v1",
  serviceaccounts: "/api/v1",
  networkpolicies: "/apis/networking.k8s.io/v1",
  poddisruptionbudgets: "/apis/policy/v1",
};
export type ChildKind = keyof typeof CHILDREN;

export class ClusterApi {
  readonly #transport: Transport;

  constructor(kubeconfig: string) {
    this.#transport = new Transport(loadConfig({ kubeconfig }).config);
  }

  /** @throws Error with the API server's message, for every status from 400 on */
  async call<Answer = unknown>(method: string, path: string, body?: object): Promise<Answer> {
    const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    const reply = await this.#transport.send({
      ...{ method, path, timeoutSeconds: TIMEOUT_SECONDS },
      ...(body && { body: JSON.stringify(body), headers: { "content-type": type } }),
    });
    if (reply.status >= 400) throw new Error(`${method} ${path}: ${reply.status} ${reply.body.slice(0, 300)}`);
    return JSON.parse(reply.body) as Answer;
  }

  run(name: string): Promise<TrainingRunObject> {
    return this.call("GET", `${RUNS}/${name}`);
  }

  patchRun(name: string, spec: object): Promise<unknown> {
    return this.call("PATCH", `${RUNS}/${name}`, { spec });
  }

  /** @param component of the run, or `controller` */
  async pods(run: string, component?: string): Promise<Pod[]> {
    const ofRun = `longrun.dev/run=${run}${component ? `,app.kubernetes.io/component=${component}` : ""}`;
    const [namespace, selector] =
      component === "controller" ? [SYSTEM, "app.kubernetes.io/component=controller"] : [NAMESPACE, ofRun];
    return this.#items<Pod>(`/api/v1/namespaces/${namespace}/pods`, selector);
  }

  async children<Kind extends Child>(run: string, kind: ChildKind): Promise<Kind[]> {
    return this.#items<Kind>(pathOf(kind), `longrun.dev/run=${run}`);
  }

  async #items<Kind>(path: string, selector: string): Promise<Kind[]> {
    const query = `labelSelector=${encodeURIComponent(selector)}`;
    return (await this.call<{ items: Kind[] }>("GET", `${path}?${query}`)).items;
  }
}

export const RUNS = `/apis/longrun.dev/v1alpha1/namespaces/${NAMESPACE}/trainingruns`;
export const pathOf = (kind: ChildKind) => `${CHILDREN[kind]}/namespaces/${NAMESPACE}/${kind}`;
export const podPath = ({ metadata }: Pod) => `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`;
export { isOver } from "../../controller/operator/parts/actors/actor-state.ts";
export type { Deployment, Pod, Service };
