/** A test's own learner, over real mutual TLS. It accepts streams and records messages; the test answers. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import * as grpc from "@grpc/grpc-js";
import { serverCredentials } from "../proto/channel.ts";
import {
  ActorProtocolService,
  channelOptions,
  type FromActorReceived,
  type FromLearnerMessage,
  type longrun,
} from "../proto/service.ts";
import type { Lease } from "./lease.ts";

type ServerStream = grpc.ServerDuplexStream<FromActorReceived, FromLearnerMessage>;

export class Learner {
  readonly #tlsDirectory: string;

  /** `tlsDirectory`: certificate of the role learner. */
  constructor(tlsDirectory: string) {
    this.#tlsDirectory = tlsDirectory;
  }

  streams: ServerStream[] = [];
  received: FromActorReceived[] = [];
  port = 0;
  welcome: longrun.v1alpha1.Welcome.$Properties = { heartbeatSeconds: 0.05, leaseSeconds: 1, idleSeconds: 0 };
  /** Status to answer with instead of a welcome. */
  refusal: grpc.status | undefined;
  /** Largest message that it sends. Absent: the default. */
  maxMessageBytes?: number;
  #grpc!: grpc.Server;
  #wakers: (() => void)[] = [];

  async start(port = 0): Promise<void> {
    this.#grpc = new grpc.Server(
      channelOptions(this.maxMessageBytes === undefined ? {} : { maxMessageBytes: this.maxMessageBytes }),
    );
    this.#grpc.addService(ActorProtocolService, {
      work: (stream: ServerStream) => {
        this.streams.push(stream);
        stream.on("error", () => {}).on("end", () => stream.end());
        stream.on("data", (message: FromActorReceived) => {
          this.received.push(message);
          if (message.message === "hello") {
            if (this.refusal) stream.emit("error", { code: this.refusal, details: "go away" });
            else stream.write({ welcome: { protocolVersion: 1, lineage: "a", ...this.welcome } });
          }
          for (const wake of this.#wakers.splice(0)) wake();
        });
      },
    });
    this.port = await new Promise((resolve, reject) =>
      this.#grpc.bindAsync(`127.0.0.1:${port}`, serverCredentials(this.#tlsDirectory), (error, bound) =>
        error ? reject(error) : resolve(bound),
      ),
    );
  }

  /** Ends at once, like a killed process. */
  kill(): void {
    this.#grpc.forceShutdown();
  }

  send(message: FromLearnerMessage): void {
    this.streams.at(-1)!.write(message);
  }

  lease(execution: string, change: Partial<Lease> = {}): longrun.v1alpha1.Attempt.$Properties {
    const attempt = { execution, number: 1, fence: "7" };
    this.send({ lease: { attempt, task: "t", program: Buffer.from("pass"), markerNonce: "", seed: 1, ...change } });
    return attempt;
  }

  /** Waits for the `count`-th message of that kind and returns it. */
  async next<Kind extends string>(
    kind: Kind,
    count = 1,
    accept = (_: FromActorReceived) => true,
    seconds = 5,
    // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever part of a message they mean
  ): Promise<any> {
    const deadline = performance.now() + seconds * 1000;
    for (;;) {
      const found = this.received.filter((message) => message.message === kind && accept(message))[count - 1];
      // biome-ignore lint/suspicious/noExplicitAny: as above
      if (found) return (found as any)[kind];
      assert.ok(performance.now() < deadline, `no ${kind} number ${count} came`);
      await Promise.race([new Promise<void>((resolve) => this.#wakers.push(resolve)), sleep(100)]);
    }
  }
  count(kind: string): number {
    return this.received.filter((message) => message.message === kind).length;
  }
}
