/**
 * The services of longrun.proto as grpc-js definitions over the generated static types.
 *
 *     const client = new ActorProtocolClient(address, clientCredentials(dir), clientOptions(address));
 *     const stream = client.work();
 *     stream.write({ hello: { protocolVersion: PROTOCOL_VERSION, actor: 'actor-0', slots: 1 } });
 *
 * Received messages have every scalar, list and map set (proto3 defaults); absent sub-messages are null or undefined.
 */
import { isIP } from "node:net";
import * as grpc from "@grpc/grpc-js";
import { OUTCOMES, type Outcome } from "./execution.ts";
import { longrun } from "./longrun.generated.js";

export const messages = longrun.v1alpha1;
export type { longrun } from "./longrun.generated.js";

/** A phase of the learner, named as in longrun.proto. */
export type PhaseName = keyof typeof messages.Phase;

/** Outcomes on the wire. */
export const OUTCOME_CODES = {
  completed: messages.Outcome.COMPLETED,
  failed: messages.Outcome.FAILED,
  timedOut: messages.Outcome.TIMED_OUT,
  outOfMemory: messages.Outcome.OUT_OF_MEMORY,
  outputLimit: messages.Outcome.OUTPUT_LIMIT,
  lost: messages.Outcome.LOST,
} as const satisfies Record<Outcome, number>;

/** Returns the outcome of a received message; undefined if longrun.proto has no such outcome. */
export function outcomeOf(code: number): Outcome | undefined {
  return OUTCOMES.find((outcome) => OUTCOME_CODES[outcome] === code);
}

/** Raised when an old actor and a new learner could misunderstand each other; both sides refuse another version. */
export const PROTOCOL_VERSION = 1;

/** Most bytes of a submission in one SubmissionChunk. */
export const CHUNK_BYTES = 256 * 1024;

export interface ChannelLimits {
  /** Limit for one message in either direction. Programs and terminal output are far smaller; submissions are sent in chunks. */
  maxMessageBytes: number;
  /** How often an idle connection is pinged. */
  keepaliveSeconds: number;
  /** The connection counts as broken if the answer to a ping takes longer, so a vanished peer is noticed without traffic. */
  keepaliveTimeoutSeconds: number;
  /** Longest pause between a client's attempts to connect. */
  maxReconnectSeconds: number;
}

const DEFAULT_CHANNEL_LIMITS: ChannelLimits = {
  maxMessageBytes: 4 * 1024 * 1024,
  keepaliveSeconds: 20,
  keepaliveTimeoutSeconds: 10,
  maxReconnectSeconds: 5,
};

/** Returns options of a server; `clientOptions` adds to them. */
export function channelOptions(limits: Partial<ChannelLimits> = {}): grpc.ChannelOptions {
  const l = { ...DEFAULT_CHANNEL_LIMITS, ...limits };
  return {
    "grpc.max_receive_message_length": l.maxMessageBytes,
    "grpc.max_send_message_length": l.maxMessageBytes,
    "grpc.keepalive_time_ms": l.keepaliveSeconds * 1000,
    "grpc.keepalive_timeout_ms": l.keepaliveTimeoutSeconds * 1000,
    "grpc.keepalive_permit_without_calls": 1,
    "grpc.initial_reconnect_backoff_ms": Math.min(200, l.maxReconnectSeconds * 1000),
    "grpc.max_reconnect_backoff_ms": l.maxReconnectSeconds * 1000,
    // Addresses are loopback or in the cluster, so a proxy for the internet must not see them.
    "grpc.enable_http_proxy": 0,
    "grpc.enable_retries": 0,
  };
}

/** Returns options of a client's channel to `address` (`host:port`). */
export function clientOptions(address: string, limits: Partial<ChannelLimits> = {}): grpc.ChannelOptions {
  const host = address.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
  return {
    ...channelOptions(limits),
    // TLS has no server name for an IP address (RFC 6066; Node warns). The learner of a run on one machine also has the name `localhost`,
    // and only the run's own authority can have signed its certificate.
    ...(isIP(host) ? { "grpc.ssl_target_name_override": "localhost" } : {}),
  };
}

interface MessageType<Properties, Decoded> {
  encode(message: Properties): { finish(): Uint8Array };
  decode(bytes: Uint8Array): Decoded;
}

const toBuffer = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

function method<Request, RequestShape, Response, ResponseShape>(
  path: string,
  stream: { request: boolean; response: boolean },
  request: MessageType<Request, RequestShape>,
  response: MessageType<Response, ResponseShape>,
) {
  return {
    path,
    requestStream: stream.request,
    responseStream: stream.response,
    requestSerialize: (value: Request) => toBuffer(request.encode(value).finish()),
    requestDeserialize: (bytes: Buffer) => request.decode(bytes),
    responseSerialize: (value: Response) => toBuffer(response.encode(value).finish()),
    responseDeserialize: (bytes: Buffer) => response.decode(bytes),
  };
}

export type FromActorMessage = longrun.v1alpha1.FromActor.$Properties;
export type FromLearnerMessage = longrun.v1alpha1.FromLearner.$Properties;
/** A decoded message: `message` names the field that is set, and narrows to it. */
export type FromActorReceived = longrun.v1alpha1.FromActor & longrun.v1alpha1.FromActor.$Shape;
export type FromLearnerReceived = longrun.v1alpha1.FromLearner & longrun.v1alpha1.FromLearner.$Shape;
export type StatusMessage = longrun.v1alpha1.Status.$Properties;
export type StatusReceived = longrun.v1alpha1.Status & longrun.v1alpha1.Status.$Shape;
type WatchRequestMessage = longrun.v1alpha1.WatchRequest.$Properties;
export type DrainActorsRequestMessage = longrun.v1alpha1.DrainActorsRequest.$Properties;
type DrainActorsResponseMessage = longrun.v1alpha1.DrainActorsResponse.$Properties;
export type SuspendRequestMessage = longrun.v1alpha1.SuspendRequest.$Properties;
export type SuspendResponseMessage = longrun.v1alpha1.SuspendResponse.$Properties;
export type TerminationMessage = longrun.v1alpha1.Termination.$Properties;
export type ReportTerminationsRequestMessage = longrun.v1alpha1.ReportTerminationsRequest.$Properties;
type ReportTerminationsResponseMessage = longrun.v1alpha1.ReportTerminationsResponse.$Properties;

export const ActorProtocolService = {
  work: method(
    "/longrun.v1alpha1.ActorProtocol/Work",
    { request: true, response: true },
    messages.FromActor,
    messages.FromLearner,
  ),
} satisfies grpc.ServiceDefinition;

export const LearnerStatusService = {
  watch: method(
    "/longrun.v1alpha1.LearnerStatus/Watch",
    { request: false, response: true },
    messages.WatchRequest,
    messages.Status,
  ),
} satisfies grpc.ServiceDefinition;

const UNARY = { request: false, response: false };

export const LearnerControlService = {
  drainActors: method(
    "/longrun.v1alpha1.LearnerControl/DrainActors",
    UNARY,
    messages.DrainActorsRequest,
    messages.DrainActorsResponse,
  ),
  suspend: method("/longrun.v1alpha1.LearnerControl/Suspend", UNARY, messages.SuspendRequest, messages.SuspendResponse),
  reportTerminations: method(
    "/longrun.v1alpha1.LearnerControl/ReportTerminations",
    UNARY,
    messages.ReportTerminationsRequest,
    messages.ReportTerminationsResponse,
  ),
} satisfies grpc.ServiceDefinition;

export type LearnerStatusHandlers = {
  watch: grpc.handleServerStreamingCall<WatchRequestMessage, StatusMessage>;
};
export type LearnerControlHandlers = {
  drainActors: grpc.handleUnaryCall<DrainActorsRequestMessage, DrainActorsResponseMessage>;
  suspend: grpc.handleUnaryCall<SuspendRequestMessage, SuspendResponseMessage>;
  reportTerminations: grpc.handleUnaryCall<ReportTerminationsRequestMessage, ReportTerminationsResponseMessage>;
};

export class ActorProtocolClient extends grpc.Client {
  /** Opens the actor's one stream. */
  work(metadata = new grpc.Metadata(), options: grpc.CallOptions = {}) {
    const { path, requestSerialize, responseDeserialize } = ActorProtocolService.work;
    return this.makeBidiStreamRequest<FromActorMessage, FromLearnerReceived>(
      path,
      requestSerialize,
      responseDeserialize,
      metadata,
      options,
    );
  }
}

/** @throws Error if the bytes are no Status */
export function decodeStatus(bytes: Buffer): StatusReceived {
  return LearnerStatusService.watch.responseDeserialize(bytes) as StatusReceived;
}

export class LearnerStatusClient extends grpc.Client {
  /** Like `watch`, but emits each status as bytes for `decodeStatus`, so a reader that skips statuses need not decode them. */
  watchEncoded(request: WatchRequestMessage = {}): grpc.ClientReadableStream<Buffer> {
    const { path, requestSerialize } = LearnerStatusService.watch;
    return this.makeServerStreamRequest<WatchRequestMessage, Buffer>(path, requestSerialize, (bytes) => bytes, request);
  }

  /** Emits the newest status at once, then each change. */
  watch(request: WatchRequestMessage = {}, metadata = new grpc.Metadata(), options: grpc.CallOptions = {}) {
    const { path, requestSerialize, responseDeserialize } = LearnerStatusService.watch;
    return this.makeServerStreamRequest<WatchRequestMessage, StatusReceived>(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      metadata,
      options,
    );
  }
}

export class LearnerControlClient extends grpc.Client {
  /** Rejects with a grpc.ServiceError, `DEADLINE_EXCEEDED` if there is no answer within `seconds`. */
  drainActors(request: DrainActorsRequestMessage, seconds: number): Promise<DrainActorsResponseMessage> {
    return this.#call(LearnerControlService.drainActors, request, seconds);
  }

  /** Rejects like `drainActors`. */
  suspend(request: SuspendRequestMessage, seconds: number): Promise<SuspendResponseMessage> {
    return this.#call(LearnerControlService.suspend, request, seconds);
  }

  /** Rejects like `drainActors`. */
  reportTerminations(
    request: ReportTerminationsRequestMessage,
    seconds: number,
  ): Promise<ReportTerminationsResponseMessage> {
    return this.#call(LearnerControlService.reportTerminations, request, seconds);
  }

  #call<Request, Response>(
    { path, requestSerialize, responseDeserialize }: grpc.MethodDefinition<Request, Response>,
    request: Request,
    seconds: number,
  ): Promise<Response> {
    const options: grpc.CallOptions = { deadline: Date.now() + seconds * 1000 };
    return new Promise((resolve, reject) => {
      this.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, options, (error, response) => {
        if (error) reject(error);
        else resolve(response as Response);
      });
    });
  }
}
