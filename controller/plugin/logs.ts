/** `kubectl longrun logs RUN`: prints the JSON lines of a run's processes, after the pod's name if there are several. */
import { once } from "node:events";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { Log } from "@kubernetes/client-node";
import { ControllerError } from "../errors.ts";
import { harmless } from "../harmless.ts";
import type { Screen } from "../local/terminal/terminal.ts";
import { COMPONENT, RUN, SUPERVISOR } from "../operator/desired/names.ts";
import { POD, type Pod } from "../operator/kube/resources.ts";
import { type Cluster, readRun } from "./cluster.ts";

interface LogsOptions {
  component: "learner" | "actor";
  follow: boolean;
  /** Read the container before its last restart. */
  previous: boolean;
  /** Number of newest lines of each; undefined: all. */
  tail: number | undefined;
}

/** @throws ControllerError `failed` if the run has no such pod, or if no log can be read */
export async function showLogs(
  cluster: Cluster,
  name: string,
  { component, follow, previous, tail }: LogsOptions,
  screen: Screen,
): Promise<void> {
  const { config, client, namespace, signal } = cluster;
  await readRun(cluster, name);
  const labelSelector = `${RUN}=${name},${COMPONENT}=${component}`;
  const pods = (await client.list<Pod>(POD, { namespace, labelSelector })).items;
  if (pods.length === 0)
    throw new ControllerError(
      "failed",
      `${name} has no ${component} pod now: kubectl longrun status ${name} shows the reason`,
    );
  const container = component === "learner" ? "learner" : SUPERVISOR;
  const faults: string[] = [];
  await Promise.all(
    pods.map(async ({ metadata: { name: pod } }) => {
      const stream = new PassThrough();
      const options = { follow, previous, ...(tail !== undefined && { tailLines: tail }) };
      try {
        const request = await new Log(config).log(namespace, pod, container, stream, options);
        signal.addEventListener("abort", () => request.abort(), { once: true });
        const lines = createInterface({ input: stream });
        lines.on("line", (line) => screen.write(`${pods.length > 1 ? `${pod} ` : ""}${harmless(line)}\n`));
        stream.on("error", () => lines.close()); // for example when the pod is deleted or the user stops
        await once(lines, "close");
      } catch (error) {
        faults.push(`${pod}: ${messageOf(error)}`);
      }
    }),
  );
  if (faults.length === pods.length) throw new ControllerError("failed", faults[0]!);
}

/** The library's errors contain the API server's whole answer. */
function messageOf(error: unknown): string {
  const { message = String(error) } = error as Error;
  return /"message":"((?:[^"\\]|\\.)*)"/.exec(message.replaceAll('\\"', '"'))?.[1] ?? message.split("\n")[0]!;
}
