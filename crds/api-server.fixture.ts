/** Sends requests of tests to the API server of their own control plane. */
import { readFileSync } from "node:fs";
import { Agent, request } from "node:https";
import type { ControlPlane } from "../test/cluster/control-plane.ts";
import type { TrainingRun } from "./trainingrun.ts";

export interface Answer {
  code: number;
  /** Texts of the `Warning` headers. */
  warnings: string[];
  body: TrainingRun & { message: string; details?: { causes?: { message: string; field: string }[] } };
}

const CONTENT_TYPES: Record<string, string> = {
  PATCH: "application/merge-patch+json",
  APPLY: "application/apply-patch+yaml",
};

export class ApiServer {
  private readonly cluster: ControlPlane;
  private readonly agent: Agent;

  constructor(cluster: ControlPlane) {
    this.cluster = cluster;
    this.agent = new Agent({ keepAlive: true, ca: readFileSync(cluster.caFile) });
  }

  /** @param method HTTP method, or APPLY for a server-side apply */
  call(method: string, path: string, body?: unknown): Promise<Answer> {
    const { url, token } = this.cluster;
    return new Promise((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${token}`,
        "content-type": CONTENT_TYPES[method] ?? "application/json",
      };
      const options = { method: method === "APPLY" ? "PATCH" : method, agent: this.agent, headers };
      const sent = request(`${url}${path}`, options, (response) => {
        let text = "";
        response.on("data", (chunk) => (text += chunk));
        response.on("end", () => {
          const warnings = [response.headers.warning ?? []].flat().map(String);
          resolve({ code: response.statusCode!, warnings, body: JSON.parse(text) });
        });
      });
      sent.on("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  close(): void {
    this.agent.destroy();
  }
}

/** Returns `field: message` of each cause; a rule at the root has `<nil>`. */
export const causesOf = ({ body }: Answer): string[] =>
  (body.details?.causes ?? [])
    .map(({ field, message }) => `${field}: ${message.replace(/^(Invalid value: .*?|Forbidden): /s, "")}`)
    .sort();
