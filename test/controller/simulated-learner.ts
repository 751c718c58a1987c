/**
 * Simulates a pod's learner process: a real gRPC server with the run's own certificates and the services that the controller calls,
 * controlled by the test.
 */
import * as grpc from "@grpc/grpc-js";
import type { ApiClient } from "../../controller/operator/kube/api-client.ts";
import { SECRET, type Secret } from "../../controller/operator/kube/resources.ts";
import { requireRole } from "../../proto/channel.ts";
import {
  channelOptions,
  type DrainActorsRequestMessage,
  type LearnerControlHandlers,
  LearnerControlService,
  type LearnerStatusHandlers,
  LearnerStatusService,
  messages,
  type ReportTerminationsRequestMessage,
  type StatusMessage,
  type SuspendRequestMessage,
} from "../../proto/service.ts";

type Watcher = Parameters<LearnerStatusHandlers["watch"]>[0];
type ActorStatus = NonNullable<StatusMessage["actors"]>[number];

export const { Phase } = messages;

export class SimulatedLearner {
  readonly drained: DrainActorsRequestMessage[] = [];
  readonly suspended: SuspendRequestMessage[] = [];
  readonly reported: ReportTerminationsRequestMessage[] = [];
  /** Called with the names of actors that must leave. */
  onDrain: (actors: string[]) => void = () => {};
  /** Suspend is answered when it resolves. */
  onSuspend: () => Promise<void> = async () => {};
  #status: StatusMessage = {
    phase: Phase.GENERATING,
    iteration: 1,
    iterations: 12,
    executions: { queued: 0, running: 0, completed: 0, lost: 0, retried: 0 },
    actors: [],
    lineage: "1",
  };
  readonly #watchers = new Set<Watcher>();
  readonly #server: grpc.Server;
  address = "";

  private constructor(server: grpc.Server) {
    this.#server = server;
  }

  /** Starts it with the certificate that its pod would mount. @returns undefined while there is no Secret: the kubelet waits for it too */
  static async start(client: ApiClient, namespace: string, run: string): Promise<SimulatedLearner | undefined> {
    const secret = await client.get<Secret>(SECRET, { namespace, name: `${run}-learner-tls` });
    if (secret === undefined) return undefined;
    const file = (name: string) => Buffer.from(secret.data?.[name] ?? "", "base64");
    const server = new grpc.Server(channelOptions());
    const learner = new SimulatedLearner(server);
    server.addService(LearnerStatusService, { watch: (call) => learner.#watch(call) } satisfies LearnerStatusHandlers);
    server.addService(LearnerControlService, learner.#control());
    const credentials = grpc.ServerCredentials.createSsl(
      file("ca.crt"),
      [{ private_key: file("tls.key"), cert_chain: file("tls.crt") }],
      true,
    );
    const port = await new Promise<number>((resolve, reject) =>
      server.bindAsync("127.0.0.1:0", credentials, (error, bound) => (error ? reject(error) : resolve(bound))),
    );
    learner.address = `127.0.0.1:${port}`;
    return learner;
  }

  get status(): StatusMessage {
    return this.#status;
  }

  /** Changes the given fields and sends them to the controller. */
  say(change: StatusMessage): void {
    this.#status = { ...this.#status, ...change };
    for (const call of this.#watchers) call.write(this.#status);
  }

  /** Sets the work for actors. */
  work(queued: number, running = 0): void {
    this.say({ executions: { ...this.#status.executions, queued, running } });
  }

  /** Adds an actor with an open stream. */
  connect(actor: ActorStatus): void {
    const others = (this.#status.actors ?? []).filter(({ name }) => name !== actor.name);
    this.say({ actors: [...others, { slots: 1, running: 0, connected: true, ...actor }] });
  }

  disconnect(name: string): void {
    this.say({ actors: (this.#status.actors ?? []).filter((actor) => actor.name !== name) });
  }

  /** Ends like a killed pod. */
  stop(): void {
    this.#server.forceShutdown();
  }

  #watch(call: Watcher): void {
    requireRole(call, "controller");
    this.#watchers.add(call);
    call.on("close", () => this.#watchers.delete(call));
    call.on("cancelled", () => this.#watchers.delete(call));
    call.write(this.#status);
  }

  #control(): LearnerControlHandlers {
    return {
      drainActors: (call, answer) => {
        this.drained.push(call.request);
        const actors = call.request.actors ?? [];
        const known = this.#status.actors ?? [];
        this.say({ actors: known.map((it) => (actors.includes(it.name ?? "") ? { ...it, draining: true } : it)) });
        this.onDrain(actors);
        answer(null, { notConnected: actors.filter((name) => !known.some((it) => it.name === name)) });
      },
      suspend: (call, answer) => {
        this.suspended.push(call.request);
        this.onSuspend().then(() => {
          this.say({
            phase: Phase.STOPPED,
            checkpoint: { iteration: 3, digest: "d".repeat(64), path: "checkpoints/1-000003" },
          });
          answer(null, { checkpoint: this.#status.checkpoint, running: 0 });
        }, answer);
      },
      reportTerminations: (call, answer) => {
        this.reported.push(call.request);
        answer(null, { outOfMemory: call.request.terminations?.length ?? 0 });
      },
    };
  }
}
