/**
 * A learner that pushes statuses as fast as the connection accepts them, in a process of its own, so that the test measures only the
 * controller's thread.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import * as grpc from "@grpc/grpc-js";
import type { ApiClient } from "../../controller/operator/kube/api-client.ts";
import { SECRET, type Secret } from "../../controller/operator/kube/resources.ts";
import { channelOptions, type LearnerStatusHandlers, LearnerStatusService, messages } from "../../proto/service.ts";

const { Phase } = messages;
const SCRIPT = fileURLToPath(import.meta.url);

interface Flood {
  files: Record<"ca" | "certificate" | "key", string>;
  /** Size of each status. */
  bytes: number;
}

/** Serves with the certificate of the run's learner; `stop` ends it. */
export async function startFlood(client: ApiClient, namespace: string, run: string, bytes: number) {
  const secret = await client.get<Secret>(SECRET, { namespace, name: `${run}-learner-tls` });
  const file = (name: string) => Buffer.from(secret?.data?.[name] ?? "", "base64").toString();
  const files = { ca: file("ca.crt"), certificate: file("tls.crt"), key: file("tls.key") };
  const child = fork(SCRIPT);
  child.send({ files, bytes } satisfies Flood);
  const [port] = (await once(child, "message")) as [number];
  return { address: `127.0.0.1:${port}`, stop: () => child.disconnect() };
}

async function serve({ files, bytes }: Flood): Promise<number> {
  const server = new grpc.Server(channelOptions());
  const message = "x".repeat(bytes);
  let said = 0;
  server.addService(LearnerStatusService, {
    watch: (call) => {
      const flood = () => {
        if (call.cancelled || call.destroyed) return;
        const phase = said++ % 2 ? Phase.EXECUTING : Phase.FINAL_EVALUATION;
        if (call.write({ phase, iteration: 1 + (said % 1000), executions: { completed: said }, message }))
          setImmediate(flood);
        else call.once("drain", flood);
      };
      flood();
    },
  } satisfies LearnerStatusHandlers);
  const pair = { private_key: Buffer.from(files.key), cert_chain: Buffer.from(files.certificate) };
  const credentials = grpc.ServerCredentials.createSsl(Buffer.from(files.ca), [pair], true);
  return new Promise((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", credentials, (error, port) => (error ? reject(error) : resolve(port))),
  );
}

if (process.argv[1] === SCRIPT) {
  process.on("disconnect", () => process.exit(0));
  const [flood] = (await once(process, "message")) as [Flood];
  process.send!(await serve(flood));
}
