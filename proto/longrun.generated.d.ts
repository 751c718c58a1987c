// Generated from longrun.proto by proto/generate.ts. Do not edit.
import * as $protobuf from "protobufjs/minimal.js";

/** Namespace longrun. */
export namespace longrun {

    /** Namespace v1alpha1. */
    namespace v1alpha1 {

        /**
         * Properties of a FromActor.
         * @deprecated Use longrun.v1alpha1.FromActor.$Properties instead.
         */
        interface IFromActor extends longrun.v1alpha1.FromActor.$Properties {
        }

        /** Represents a FromActor. */
        class FromActor {

            /**
             * Constructs a new FromActor.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.FromActor.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** FromActor hello. */
            hello?: (longrun.v1alpha1.Hello.$Properties|null);

            /** FromActor ready. */
            ready?: (longrun.v1alpha1.Ready.$Properties|null);

            /** FromActor heartbeat. */
            heartbeat?: (longrun.v1alpha1.Heartbeat.$Properties|null);

            /** FromActor result. */
            result?: (longrun.v1alpha1.ResultHeader.$Properties|null);

            /** FromActor chunk. */
            chunk?: (longrun.v1alpha1.SubmissionChunk.$Properties|null);

            /** FromActor drained. */
            drained?: (longrun.v1alpha1.Drained.$Properties|null);

            /** FromActor message. */
            message?: ("hello"|"ready"|"heartbeat"|"result"|"chunk"|"drained");

            /**
             * Creates a new FromActor instance using the specified properties.
             * @param [properties] Properties to set
             * @returns FromActor instance
             */
            static create(properties: longrun.v1alpha1.FromActor.$Shape): longrun.v1alpha1.FromActor & longrun.v1alpha1.FromActor.$Shape;
            static create(properties?: longrun.v1alpha1.FromActor.$Properties): longrun.v1alpha1.FromActor;

            /**
             * Encodes the specified FromActor message. Does not implicitly {@link longrun.v1alpha1.FromActor.verify|verify} messages.
             * @param message FromActor message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.FromActor.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a FromActor message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.FromActor & longrun.v1alpha1.FromActor.$Shape} FromActor
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.FromActor & longrun.v1alpha1.FromActor.$Shape;
        }

        namespace FromActor {

            /** Properties of a FromActor. */
            interface $Properties {

                /** FromActor hello */
                hello?: (longrun.v1alpha1.Hello.$Properties|null);

                /** FromActor ready */
                ready?: (longrun.v1alpha1.Ready.$Properties|null);

                /** FromActor heartbeat */
                heartbeat?: (longrun.v1alpha1.Heartbeat.$Properties|null);

                /** FromActor result */
                result?: (longrun.v1alpha1.ResultHeader.$Properties|null);

                /** FromActor chunk */
                chunk?: (longrun.v1alpha1.SubmissionChunk.$Properties|null);

                /** FromActor drained */
                drained?: (longrun.v1alpha1.Drained.$Properties|null);

                /** FromActor message */
                message?: ("hello"|"ready"|"heartbeat"|"result"|"chunk"|"drained");

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Narrowed shape of a FromActor. */
            type $Shape = {
              hello?: longrun.v1alpha1.Hello.$Shape|null;
              ready?: longrun.v1alpha1.Ready.$Shape|null;
              heartbeat?: longrun.v1alpha1.Heartbeat.$Shape|null;
              result?: longrun.v1alpha1.ResultHeader.$Shape|null;
              chunk?: longrun.v1alpha1.SubmissionChunk.$Shape|null;
              drained?: longrun.v1alpha1.Drained.$Shape|null;
              $unknowns?: Uint8Array[];
            } & (
              ({ message?: undefined; hello?: null; ready?: null; heartbeat?: null; result?: null; chunk?: null; drained?: null }|{ message?: "hello"; hello: longrun.v1alpha1.Hello.$Shape; ready?: null; heartbeat?: null; result?: null; chunk?: null; drained?: null }|{ message?: "ready"; hello?: null; ready: longrun.v1alpha1.Ready.$Shape; heartbeat?: null; result?: null; chunk?: null; drained?: null }|{ message?: "heartbeat"; hello?: null; ready?: null; heartbeat: longrun.v1alpha1.Heartbeat.$Shape; result?: null; chunk?: null; drained?: null }|{ message?: "result"; hello?: null; ready?: null; heartbeat?: null; result: longrun.v1alpha1.ResultHeader.$Shape; chunk?: null; drained?: null }|{ message?: "chunk"; hello?: null; ready?: null; heartbeat?: null; result?: null; chunk: longrun.v1alpha1.SubmissionChunk.$Shape; drained?: null }|{ message?: "drained"; hello?: null; ready?: null; heartbeat?: null; result?: null; chunk?: null; drained: longrun.v1alpha1.Drained.$Shape })
            );
        }

        /**
         * Properties of a FromLearner.
         * @deprecated Use longrun.v1alpha1.FromLearner.$Properties instead.
         */
        interface IFromLearner extends longrun.v1alpha1.FromLearner.$Properties {
        }

        /** Represents a FromLearner. */
        class FromLearner {

            /**
             * Constructs a new FromLearner.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.FromLearner.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** FromLearner welcome. */
            welcome?: (longrun.v1alpha1.Welcome.$Properties|null);

            /** FromLearner lease. */
            lease?: (longrun.v1alpha1.Lease.$Properties|null);

            /** FromLearner ack. */
            ack?: (longrun.v1alpha1.Ack.$Properties|null);

            /** FromLearner revoke. */
            revoke?: (longrun.v1alpha1.Revoke.$Properties|null);

            /** FromLearner drain. */
            drain?: (longrun.v1alpha1.Drain.$Properties|null);

            /** FromLearner message. */
            message?: ("welcome"|"lease"|"ack"|"revoke"|"drain");

            /**
             * Creates a new FromLearner instance using the specified properties.
             * @param [properties] Properties to set
             * @returns FromLearner instance
             */
            static create(properties: longrun.v1alpha1.FromLearner.$Shape): longrun.v1alpha1.FromLearner & longrun.v1alpha1.FromLearner.$Shape;
            static create(properties?: longrun.v1alpha1.FromLearner.$Properties): longrun.v1alpha1.FromLearner;

            /**
             * Encodes the specified FromLearner message. Does not implicitly {@link longrun.v1alpha1.FromLearner.verify|verify} messages.
             * @param message FromLearner message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.FromLearner.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a FromLearner message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.FromLearner & longrun.v1alpha1.FromLearner.$Shape} FromLearner
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.FromLearner & longrun.v1alpha1.FromLearner.$Shape;
        }

        namespace FromLearner {

            /** Properties of a FromLearner. */
            interface $Properties {

                /** FromLearner welcome */
                welcome?: (longrun.v1alpha1.Welcome.$Properties|null);

                /** FromLearner lease */
                lease?: (longrun.v1alpha1.Lease.$Properties|null);

                /** FromLearner ack */
                ack?: (longrun.v1alpha1.Ack.$Properties|null);

                /** FromLearner revoke */
                revoke?: (longrun.v1alpha1.Revoke.$Properties|null);

                /** FromLearner drain */
                drain?: (longrun.v1alpha1.Drain.$Properties|null);

                /** FromLearner message */
                message?: ("welcome"|"lease"|"ack"|"revoke"|"drain");

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Narrowed shape of a FromLearner. */
            type $Shape = {
              welcome?: longrun.v1alpha1.Welcome.$Shape|null;
              lease?: longrun.v1alpha1.Lease.$Shape|null;
              ack?: longrun.v1alpha1.Ack.$Shape|null;
              revoke?: longrun.v1alpha1.Revoke.$Shape|null;
              drain?: longrun.v1alpha1.Drain.$Shape|null;
              $unknowns?: Uint8Array[];
            } & (
              ({ message?: undefined; welcome?: null; lease?: null; ack?: null; revoke?: null; drain?: null }|{ message?: "welcome"; welcome: longrun.v1alpha1.Welcome.$Shape; lease?: null; ack?: null; revoke?: null; drain?: null }|{ message?: "lease"; welcome?: null; lease: longrun.v1alpha1.Lease.$Shape; ack?: null; revoke?: null; drain?: null }|{ message?: "ack"; welcome?: null; lease?: null; ack: longrun.v1alpha1.Ack.$Shape; revoke?: null; drain?: null }|{ message?: "revoke"; welcome?: null; lease?: null; ack?: null; revoke: longrun.v1alpha1.Revoke.$Shape; drain?: null }|{ message?: "drain"; welcome?: null; lease?: null; ack?: null; revoke?: null; drain: longrun.v1alpha1.Drain.$Shape })
            );
        }

        /**
         * Properties of a Hello.
         * @deprecated Use longrun.v1alpha1.Hello.$Properties instead.
         */
        interface IHello extends longrun.v1alpha1.Hello.$Properties {
        }

        /** Represents a Hello. */
        class Hello {

            /**
             * Constructs a new Hello.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.Hello.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Hello protocolVersion. */
            protocolVersion: number;

            /** Hello actor. */
            actor: string;

            /** Hello isolationLevel. */
            isolationLevel: string;

            /** Hello slots. */
            slots: number;

            /** Hello pythonDigest. */
            pythonDigest: string;

            /** Hello holding. */
            holding: longrun.v1alpha1.Attempt.$Properties[];

            /** Hello versions. */
            versions: { [k: string]: string };

            /** Hello capabilities. */
            capabilities: string[];

            /** Hello isolationMissing. */
            isolationMissing: string[];

            /** Hello packages. */
            packages: { [k: string]: string };

            /**
             * Creates a new Hello instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Hello instance
             */
            static create(properties: longrun.v1alpha1.Hello.$Shape): longrun.v1alpha1.Hello & longrun.v1alpha1.Hello.$Shape;
            static create(properties?: longrun.v1alpha1.Hello.$Properties): longrun.v1alpha1.Hello;

            /**
             * Encodes the specified Hello message. Does not implicitly {@link longrun.v1alpha1.Hello.verify|verify} messages.
             * @param message Hello message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.Hello.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Hello message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.Hello & longrun.v1alpha1.Hello.$Shape} Hello
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.Hello & longrun.v1alpha1.Hello.$Shape;
        }

        namespace Hello {

            /** Properties of a Hello. */
            interface $Properties {

                /** Hello protocolVersion */
                protocolVersion?: (number|null);

                /** Hello actor */
                actor?: (string|null);

                /** Hello isolationLevel */
                isolationLevel?: (string|null);

                /** Hello slots */
                slots?: (number|null);

                /** Hello pythonDigest */
                pythonDigest?: (string|null);

                /** Hello holding */
                holding?: (longrun.v1alpha1.Attempt.$Properties[]|null);

                /** Hello versions */
                versions?: ({ [k: string]: string }|null);

                /** Hello capabilities */
                capabilities?: (string[]|null);

                /** Hello isolationMissing */
                isolationMissing?: (string[]|null);

                /** Hello packages */
                packages?: ({ [k: string]: string }|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Hello. */
            type $Shape = longrun.v1alpha1.Hello.$Properties;
        }

        /**
         * Properties of an Attempt.
         * @deprecated Use longrun.v1alpha1.Attempt.$Properties instead.
         */
        interface IAttempt extends longrun.v1alpha1.Attempt.$Properties {
        }

        /** Represents an Attempt. */
        class Attempt {

            /**
             * Constructs a new Attempt.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.Attempt.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Attempt execution. */
            execution: string;

            /** Attempt number. */
            number: number;

            /** Attempt fence. */
            fence: string;

            /**
             * Creates a new Attempt instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Attempt instance
             */
            static create(properties: longrun.v1alpha1.Attempt.$Shape): longrun.v1alpha1.Attempt & longrun.v1alpha1.Attempt.$Shape;
            static create(properties?: longrun.v1alpha1.Attempt.$Properties): longrun.v1alpha1.Attempt;

            /**
             * Encodes the specified Attempt message. Does not implicitly {@link longrun.v1alpha1.Attempt.verify|verify} messages.
             * @param message Attempt message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.Attempt.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes an Attempt message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.Attempt & longrun.v1alpha1.Attempt.$Shape} Attempt
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.Attempt & longrun.v1alpha1.Attempt.$Shape;
        }

        namespace Attempt {

            /** Properties of an Attempt. */
            interface $Properties {

                /** Attempt execution */
                execution?: (string|null);

                /** Attempt number */
                number?: (number|null);

                /** Attempt fence */
                fence?: (string|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of an Attempt. */
            type $Shape = longrun.v1alpha1.Attempt.$Properties;
        }

        /**
         * Properties of a Ready.
         * @deprecated Use longrun.v1alpha1.Ready.$Properties instead.
         */
        interface IReady extends longrun.v1alpha1.Ready.$Properties {
        }

        /** Represents a Ready. */
        class Ready {

            /**
             * Constructs a new Ready.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.Ready.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Ready freeSlots. */
            freeSlots: number;

            /** Ready draining. */
            draining: boolean;

            /**
             * Creates a new Ready instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Ready instance
             */
            static create(properties: longrun.v1alpha1.Ready.$Shape): longrun.v1alpha1.Ready & longrun.v1alpha1.Ready.$Shape;
            static create(properties?: longrun.v1alpha1.Ready.$Properties): longrun.v1alpha1.Ready;

            /**
             * Encodes the specified Ready message. Does not implicitly {@link longrun.v1alpha1.Ready.verify|verify} messages.
             * @param message Ready message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.Ready.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Ready message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.Ready & longrun.v1alpha1.Ready.$Shape} Ready
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.Ready & longrun.v1alpha1.Ready.$Shape;
        }

        namespace Ready {

            /** Properties of a Ready. */
            interface $Properties {

                /** Ready freeSlots */
                freeSlots?: (number|null);

                /** Ready draining */
                draining?: (boolean|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Ready. */
            type $Shape = longrun.v1alpha1.Ready.$Properties;
        }

        /**
         * Properties of a Welcome.
         * @deprecated Use longrun.v1alpha1.Welcome.$Properties instead.
         */
        interface IWelcome extends longrun.v1alpha1.Welcome.$Properties {
        }

        /** Represents a Welcome. */
        class Welcome {

            /**
             * Constructs a new Welcome.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.Welcome.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Welcome protocolVersion. */
            protocolVersion: number;

            /** Welcome lineage. */
            lineage: string;

            /** Welcome heartbeatSeconds. */
            heartbeatSeconds: number;

            /** Welcome leaseSeconds. */
            leaseSeconds: number;

            /** Welcome idleSeconds. */
            idleSeconds: number;

            /** Welcome revoked. */
            revoked: longrun.v1alpha1.Attempt.$Properties[];

            /**
             * Creates a new Welcome instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Welcome instance
             */
            static create(properties: longrun.v1alpha1.Welcome.$Shape): longrun.v1alpha1.Welcome & longrun.v1alpha1.Welcome.$Shape;
            static create(properties?: longrun.v1alpha1.Welcome.$Properties): longrun.v1alpha1.Welcome;

            /**
             * Encodes the specified Welcome message. Does not implicitly {@link longrun.v1alpha1.Welcome.verify|verify} messages.
             * @param message Welcome message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.Welcome.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Welcome message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.Welcome & longrun.v1alpha1.Welcome.$Shape} Welcome
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.Welcome & longrun.v1alpha1.Welcome.$Shape;
        }

        namespace Welcome {

            /** Properties of a Welcome. */
            interface $Properties {

                /** Welcome protocolVersion */
                protocolVersion?: (number|null);

                /** Welcome lineage */
                lineage?: (string|null);

                /** Welcome heartbeatSeconds */
                heartbeatSeconds?: (number|null);

                /** Welcome leaseSeconds */
                leaseSeconds?: (number|null);

                /** Welcome idleSeconds */
                idleSeconds?: (number|null);

                /** Welcome revoked */
                revoked?: (longrun.v1alpha1.Attempt.$Properties[]|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Welcome. */
            type $Shape = longrun.v1alpha1.Welcome.$Properties;
        }

        /**
         * Properties of a Limits.
         * @deprecated Use longrun.v1alpha1.Limits.$Properties instead.
         */
        interface ILimits extends longrun.v1alpha1.Limits.$Properties {
        }

        /** Represents a Limits. */
        class Limits {

            /**
             * Constructs a new Limits.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.Limits.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Limits timeoutSeconds. */
            timeoutSeconds: number;

            /** Limits memoryBytes. */
            memoryBytes: number;

            /** Limits outputBytes. */
            outputBytes: number;

            /** Limits keptOutputBytes. */
            keptOutputBytes: number;

            /** Limits scratchBytes. */
            scratchBytes: number;

            /** Limits scratchFiles. */
            scratchFiles: number;

            /** Limits processes. */
            processes: number;

            /** Limits submissionBytes. */
            submissionBytes: number;

            /**
             * Creates a new Limits instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Limits instance
             */
            static create(properties: longrun.v1alpha1.Limits.$Shape): longrun.v1alpha1.Limits & longrun.v1alpha1.Limits.$Shape;
            static create(properties?: longrun.v1alpha1.Limits.$Properties): longrun.v1alpha1.Limits;

            /**
             * Encodes the specified Limits message. Does not implicitly {@link longrun.v1alpha1.Limits.verify|verify} messages.
             * @param message Limits message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.Limits.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Limits message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.Limits & longrun.v1alpha1.Limits.$Shape} Limits
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.Limits & longrun.v1alpha1.Limits.$Shape;
        }

        namespace Limits {

            /** Properties of a Limits. */
            interface $Properties {

                /** Limits timeoutSeconds */
                timeoutSeconds?: (number|null);

                /** Limits memoryBytes */
                memoryBytes?: (number|null);

                /** Limits outputBytes */
                outputBytes?: (number|null);

                /** Limits keptOutputBytes */
                keptOutputBytes?: (number|null);

                /** Limits scratchBytes */
                scratchBytes?: (number|null);

                /** Limits scratchFiles */
                scratchFiles?: (number|null);

                /** Limits processes */
                processes?: (number|null);

                /** Limits submissionBytes */
                submissionBytes?: (number|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Limits. */
            type $Shape = longrun.v1alpha1.Limits.$Properties;
        }

        /**
         * Properties of a Lease.
         * @deprecated Use longrun.v1alpha1.Lease.$Properties instead.
         */
        interface ILease extends longrun.v1alpha1.Lease.$Properties {
        }

        /** Represents a Lease. */
        class Lease {

            /**
             * Constructs a new Lease.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.Lease.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Lease attempt. */
            attempt?: (longrun.v1alpha1.Attempt.$Properties|null);

            /** Lease task. */
            task: string;

            /** Lease program. */
            program: Uint8Array;

            /** Lease markerNonce. */
            markerNonce: string;

            /** Lease limits. */
            limits?: (longrun.v1alpha1.Limits.$Properties|null);

            /** Lease seed. */
            seed: number;

            /**
             * Creates a new Lease instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Lease instance
             */
            static create(properties: longrun.v1alpha1.Lease.$Shape): longrun.v1alpha1.Lease & longrun.v1alpha1.Lease.$Shape;
            static create(properties?: longrun.v1alpha1.Lease.$Properties): longrun.v1alpha1.Lease;

            /**
             * Encodes the specified Lease message. Does not implicitly {@link longrun.v1alpha1.Lease.verify|verify} messages.
             * @param message Lease message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.Lease.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Lease message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.Lease & longrun.v1alpha1.Lease.$Shape} Lease
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.Lease & longrun.v1alpha1.Lease.$Shape;
        }

        namespace Lease {

            /** Properties of a Lease. */
            interface $Properties {

                /** Lease attempt */
                attempt?: (longrun.v1alpha1.Attempt.$Properties|null);

                /** Lease task */
                task?: (string|null);

                /** Lease program */
                program?: (Uint8Array|null);

                /** Lease markerNonce */
                markerNonce?: (string|null);

                /** Lease limits */
                limits?: (longrun.v1alpha1.Limits.$Properties|null);

                /** Lease seed */
                seed?: (number|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Lease. */
            type $Shape = longrun.v1alpha1.Lease.$Properties;
        }

        /**
         * Properties of a Progress.
         * @deprecated Use longrun.v1alpha1.Progress.$Properties instead.
         */
        interface IProgress extends longrun.v1alpha1.Progress.$Properties {
        }

        /** Represents a Progress. */
        class Progress {

            /**
             * Constructs a new Progress.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.Progress.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Progress attempt. */
            attempt?: (longrun.v1alpha1.Attempt.$Properties|null);

            /** Progress elapsedSeconds. */
            elapsedSeconds: number;

            /** Progress cpuSeconds. */
            cpuSeconds: number;

            /** Progress memoryBytes. */
            memoryBytes: number;

            /** Progress markers. */
            markers: string[];

            /**
             * Creates a new Progress instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Progress instance
             */
            static create(properties: longrun.v1alpha1.Progress.$Shape): longrun.v1alpha1.Progress & longrun.v1alpha1.Progress.$Shape;
            static create(properties?: longrun.v1alpha1.Progress.$Properties): longrun.v1alpha1.Progress;

            /**
             * Encodes the specified Progress message. Does not implicitly {@link longrun.v1alpha1.Progress.verify|verify} messages.
             * @param message Progress message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.Progress.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Progress message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.Progress & longrun.v1alpha1.Progress.$Shape} Progress
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.Progress & longrun.v1alpha1.Progress.$Shape;
        }

        namespace Progress {

            /** Properties of a Progress. */
            interface $Properties {

                /** Progress attempt */
                attempt?: (longrun.v1alpha1.Attempt.$Properties|null);

                /** Progress elapsedSeconds */
                elapsedSeconds?: (number|null);

                /** Progress cpuSeconds */
                cpuSeconds?: (number|null);

                /** Progress memoryBytes */
                memoryBytes?: (number|null);

                /** Progress markers */
                markers?: (string[]|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Progress. */
            type $Shape = longrun.v1alpha1.Progress.$Properties;
        }

        /**
         * Properties of a Heartbeat.
         * @deprecated Use longrun.v1alpha1.Heartbeat.$Properties instead.
         */
        interface IHeartbeat extends longrun.v1alpha1.Heartbeat.$Properties {
        }

        /** Represents a Heartbeat. */
        class Heartbeat {

            /**
             * Constructs a new Heartbeat.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.Heartbeat.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Heartbeat running. */
            running: longrun.v1alpha1.Progress.$Properties[];

            /** Heartbeat busySeconds. */
            busySeconds: number;

            /** Heartbeat aliveSeconds. */
            aliveSeconds: number;

            /**
             * Creates a new Heartbeat instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Heartbeat instance
             */
            static create(properties: longrun.v1alpha1.Heartbeat.$Shape): longrun.v1alpha1.Heartbeat & longrun.v1alpha1.Heartbeat.$Shape;
            static create(properties?: longrun.v1alpha1.Heartbeat.$Properties): longrun.v1alpha1.Heartbeat;

            /**
             * Encodes the specified Heartbeat message. Does not implicitly {@link longrun.v1alpha1.Heartbeat.verify|verify} messages.
             * @param message Heartbeat message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.Heartbeat.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Heartbeat message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.Heartbeat & longrun.v1alpha1.Heartbeat.$Shape} Heartbeat
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.Heartbeat & longrun.v1alpha1.Heartbeat.$Shape;
        }

        namespace Heartbeat {

            /** Properties of a Heartbeat. */
            interface $Properties {

                /** Heartbeat running */
                running?: (longrun.v1alpha1.Progress.$Properties[]|null);

                /** Heartbeat busySeconds */
                busySeconds?: (number|null);

                /** Heartbeat aliveSeconds */
                aliveSeconds?: (number|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Heartbeat. */
            type $Shape = longrun.v1alpha1.Heartbeat.$Properties;
        }

        /** Outcome enum. */
        enum Outcome {

            /** OUTCOME_UNSPECIFIED value */
            OUTCOME_UNSPECIFIED = 0,

            /** COMPLETED value */
            COMPLETED = 1,

            /** FAILED value */
            FAILED = 2,

            /** TIMED_OUT value */
            TIMED_OUT = 3,

            /** OUT_OF_MEMORY value */
            OUT_OF_MEMORY = 4,

            /** OUTPUT_LIMIT value */
            OUTPUT_LIMIT = 5,

            /** LOST value */
            LOST = 6
        }

        /**
         * Properties of a Marker.
         * @deprecated Use longrun.v1alpha1.Marker.$Properties instead.
         */
        interface IMarker extends longrun.v1alpha1.Marker.$Properties {
        }

        /** Represents a Marker. */
        class Marker {

            /**
             * Constructs a new Marker.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.Marker.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Marker name. */
            name: string;

            /** Marker value. */
            value: string;

            /** Marker atSeconds. */
            atSeconds: number;

            /**
             * Creates a new Marker instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Marker instance
             */
            static create(properties: longrun.v1alpha1.Marker.$Shape): longrun.v1alpha1.Marker & longrun.v1alpha1.Marker.$Shape;
            static create(properties?: longrun.v1alpha1.Marker.$Properties): longrun.v1alpha1.Marker;

            /**
             * Encodes the specified Marker message. Does not implicitly {@link longrun.v1alpha1.Marker.verify|verify} messages.
             * @param message Marker message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.Marker.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Marker message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.Marker & longrun.v1alpha1.Marker.$Shape} Marker
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.Marker & longrun.v1alpha1.Marker.$Shape;
        }

        namespace Marker {

            /** Properties of a Marker. */
            interface $Properties {

                /** Marker name */
                name?: (string|null);

                /** Marker value */
                value?: (string|null);

                /** Marker atSeconds */
                atSeconds?: (number|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Marker. */
            type $Shape = longrun.v1alpha1.Marker.$Properties;
        }

        /**
         * Properties of a ResultHeader.
         * @deprecated Use longrun.v1alpha1.ResultHeader.$Properties instead.
         */
        interface IResultHeader extends longrun.v1alpha1.ResultHeader.$Properties {
        }

        /** Represents a ResultHeader. */
        class ResultHeader {

            /**
             * Constructs a new ResultHeader.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.ResultHeader.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** ResultHeader attempt. */
            attempt?: (longrun.v1alpha1.Attempt.$Properties|null);

            /** ResultHeader outcome. */
            outcome: longrun.v1alpha1.Outcome;

            /** ResultHeader exitStatus. */
            exitStatus: number;

            /** ResultHeader signal. */
            signal: number;

            /** ResultHeader durationSeconds. */
            durationSeconds: number;

            /** ResultHeader cpuSeconds. */
            cpuSeconds: number;

            /** ResultHeader peakMemoryBytes. */
            peakMemoryBytes: number;

            /** ResultHeader markers. */
            markers: longrun.v1alpha1.Marker.$Properties[];

            /** ResultHeader forgedMarkers. */
            forgedMarkers: number;

            /** ResultHeader imitatedMarkers. */
            imitatedMarkers: number;

            /** ResultHeader terminalOutput. */
            terminalOutput: Uint8Array;

            /** ResultHeader outputBytes. */
            outputBytes: number;

            /** ResultHeader submission. */
            submission?: (longrun.v1alpha1.SubmissionInfo.$Properties|null);

            /** ResultHeader submissionRefused. */
            submissionRefused: string;

            /** ResultHeader detail. */
            detail: string;

            /** ResultHeader isolationLevel. */
            isolationLevel: string;

            /** ResultHeader slot. */
            slot?: (number|null);

            /** ResultHeader sandboxBroke. */
            sandboxBroke: boolean;

            /** ResultHeader disrupted. */
            disrupted: boolean;

            /**
             * Creates a new ResultHeader instance using the specified properties.
             * @param [properties] Properties to set
             * @returns ResultHeader instance
             */
            static create(properties: longrun.v1alpha1.ResultHeader.$Shape): longrun.v1alpha1.ResultHeader & longrun.v1alpha1.ResultHeader.$Shape;
            static create(properties?: longrun.v1alpha1.ResultHeader.$Properties): longrun.v1alpha1.ResultHeader;

            /**
             * Encodes the specified ResultHeader message. Does not implicitly {@link longrun.v1alpha1.ResultHeader.verify|verify} messages.
             * @param message ResultHeader message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.ResultHeader.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a ResultHeader message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.ResultHeader & longrun.v1alpha1.ResultHeader.$Shape} ResultHeader
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.ResultHeader & longrun.v1alpha1.ResultHeader.$Shape;
        }

        namespace ResultHeader {

            /** Properties of a ResultHeader. */
            interface $Properties {

                /** ResultHeader attempt */
                attempt?: (longrun.v1alpha1.Attempt.$Properties|null);

                /** ResultHeader outcome */
                outcome?: (longrun.v1alpha1.Outcome|null);

                /** ResultHeader exitStatus */
                exitStatus?: (number|null);

                /** ResultHeader signal */
                signal?: (number|null);

                /** ResultHeader durationSeconds */
                durationSeconds?: (number|null);

                /** ResultHeader cpuSeconds */
                cpuSeconds?: (number|null);

                /** ResultHeader peakMemoryBytes */
                peakMemoryBytes?: (number|null);

                /** ResultHeader markers */
                markers?: (longrun.v1alpha1.Marker.$Properties[]|null);

                /** ResultHeader forgedMarkers */
                forgedMarkers?: (number|null);

                /** ResultHeader imitatedMarkers */
                imitatedMarkers?: (number|null);

                /** ResultHeader terminalOutput */
                terminalOutput?: (Uint8Array|null);

                /** ResultHeader outputBytes */
                outputBytes?: (number|null);

                /** ResultHeader submission */
                submission?: (longrun.v1alpha1.SubmissionInfo.$Properties|null);

                /** ResultHeader submissionRefused */
                submissionRefused?: (string|null);

                /** ResultHeader detail */
                detail?: (string|null);

                /** ResultHeader isolationLevel */
                isolationLevel?: (string|null);

                /** ResultHeader slot */
                slot?: (number|null);

                /** ResultHeader sandboxBroke */
                sandboxBroke?: (boolean|null);

                /** ResultHeader disrupted */
                disrupted?: (boolean|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a ResultHeader. */
            type $Shape = longrun.v1alpha1.ResultHeader.$Properties;
        }

        /**
         * Properties of a SubmissionInfo.
         * @deprecated Use longrun.v1alpha1.SubmissionInfo.$Properties instead.
         */
        interface ISubmissionInfo extends longrun.v1alpha1.SubmissionInfo.$Properties {
        }

        /** Represents a SubmissionInfo. */
        class SubmissionInfo {

            /**
             * Constructs a new SubmissionInfo.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.SubmissionInfo.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** SubmissionInfo bytes. */
            bytes: number;

            /** SubmissionInfo sha256. */
            sha256: string;

            /** SubmissionInfo compressedBytes. */
            compressedBytes: number;

            /** SubmissionInfo chunks. */
            chunks: number;

            /**
             * Creates a new SubmissionInfo instance using the specified properties.
             * @param [properties] Properties to set
             * @returns SubmissionInfo instance
             */
            static create(properties: longrun.v1alpha1.SubmissionInfo.$Shape): longrun.v1alpha1.SubmissionInfo & longrun.v1alpha1.SubmissionInfo.$Shape;
            static create(properties?: longrun.v1alpha1.SubmissionInfo.$Properties): longrun.v1alpha1.SubmissionInfo;

            /**
             * Encodes the specified SubmissionInfo message. Does not implicitly {@link longrun.v1alpha1.SubmissionInfo.verify|verify} messages.
             * @param message SubmissionInfo message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.SubmissionInfo.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a SubmissionInfo message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.SubmissionInfo & longrun.v1alpha1.SubmissionInfo.$Shape} SubmissionInfo
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.SubmissionInfo & longrun.v1alpha1.SubmissionInfo.$Shape;
        }

        namespace SubmissionInfo {

            /** Properties of a SubmissionInfo. */
            interface $Properties {

                /** SubmissionInfo bytes */
                bytes?: (number|null);

                /** SubmissionInfo sha256 */
                sha256?: (string|null);

                /** SubmissionInfo compressedBytes */
                compressedBytes?: (number|null);

                /** SubmissionInfo chunks */
                chunks?: (number|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a SubmissionInfo. */
            type $Shape = longrun.v1alpha1.SubmissionInfo.$Properties;
        }

        /**
         * Properties of a SubmissionChunk.
         * @deprecated Use longrun.v1alpha1.SubmissionChunk.$Properties instead.
         */
        interface ISubmissionChunk extends longrun.v1alpha1.SubmissionChunk.$Properties {
        }

        /** Represents a SubmissionChunk. */
        class SubmissionChunk {

            /**
             * Constructs a new SubmissionChunk.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.SubmissionChunk.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** SubmissionChunk attempt. */
            attempt?: (longrun.v1alpha1.Attempt.$Properties|null);

            /** SubmissionChunk index. */
            index: number;

            /** SubmissionChunk data. */
            data: Uint8Array;

            /**
             * Creates a new SubmissionChunk instance using the specified properties.
             * @param [properties] Properties to set
             * @returns SubmissionChunk instance
             */
            static create(properties: longrun.v1alpha1.SubmissionChunk.$Shape): longrun.v1alpha1.SubmissionChunk & longrun.v1alpha1.SubmissionChunk.$Shape;
            static create(properties?: longrun.v1alpha1.SubmissionChunk.$Properties): longrun.v1alpha1.SubmissionChunk;

            /**
             * Encodes the specified SubmissionChunk message. Does not implicitly {@link longrun.v1alpha1.SubmissionChunk.verify|verify} messages.
             * @param message SubmissionChunk message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.SubmissionChunk.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a SubmissionChunk message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.SubmissionChunk & longrun.v1alpha1.SubmissionChunk.$Shape} SubmissionChunk
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.SubmissionChunk & longrun.v1alpha1.SubmissionChunk.$Shape;
        }

        namespace SubmissionChunk {

            /** Properties of a SubmissionChunk. */
            interface $Properties {

                /** SubmissionChunk attempt */
                attempt?: (longrun.v1alpha1.Attempt.$Properties|null);

                /** SubmissionChunk index */
                index?: (number|null);

                /** SubmissionChunk data */
                data?: (Uint8Array|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a SubmissionChunk. */
            type $Shape = longrun.v1alpha1.SubmissionChunk.$Properties;
        }

        /**
         * Properties of an Ack.
         * @deprecated Use longrun.v1alpha1.Ack.$Properties instead.
         */
        interface IAck extends longrun.v1alpha1.Ack.$Properties {
        }

        /** Represents an Ack. */
        class Ack {

            /**
             * Constructs a new Ack.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.Ack.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Ack attempt. */
            attempt?: (longrun.v1alpha1.Attempt.$Properties|null);

            /** Ack accepted. */
            accepted: boolean;

            /** Ack reason. */
            reason: string;

            /**
             * Creates a new Ack instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Ack instance
             */
            static create(properties: longrun.v1alpha1.Ack.$Shape): longrun.v1alpha1.Ack & longrun.v1alpha1.Ack.$Shape;
            static create(properties?: longrun.v1alpha1.Ack.$Properties): longrun.v1alpha1.Ack;

            /**
             * Encodes the specified Ack message. Does not implicitly {@link longrun.v1alpha1.Ack.verify|verify} messages.
             * @param message Ack message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.Ack.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes an Ack message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.Ack & longrun.v1alpha1.Ack.$Shape} Ack
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.Ack & longrun.v1alpha1.Ack.$Shape;
        }

        namespace Ack {

            /** Properties of an Ack. */
            interface $Properties {

                /** Ack attempt */
                attempt?: (longrun.v1alpha1.Attempt.$Properties|null);

                /** Ack accepted */
                accepted?: (boolean|null);

                /** Ack reason */
                reason?: (string|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of an Ack. */
            type $Shape = longrun.v1alpha1.Ack.$Properties;
        }

        /**
         * Properties of a Revoke.
         * @deprecated Use longrun.v1alpha1.Revoke.$Properties instead.
         */
        interface IRevoke extends longrun.v1alpha1.Revoke.$Properties {
        }

        /** Represents a Revoke. */
        class Revoke {

            /**
             * Constructs a new Revoke.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.Revoke.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Revoke attempt. */
            attempt?: (longrun.v1alpha1.Attempt.$Properties|null);

            /** Revoke reason. */
            reason: string;

            /**
             * Creates a new Revoke instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Revoke instance
             */
            static create(properties: longrun.v1alpha1.Revoke.$Shape): longrun.v1alpha1.Revoke & longrun.v1alpha1.Revoke.$Shape;
            static create(properties?: longrun.v1alpha1.Revoke.$Properties): longrun.v1alpha1.Revoke;

            /**
             * Encodes the specified Revoke message. Does not implicitly {@link longrun.v1alpha1.Revoke.verify|verify} messages.
             * @param message Revoke message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.Revoke.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Revoke message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.Revoke & longrun.v1alpha1.Revoke.$Shape} Revoke
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.Revoke & longrun.v1alpha1.Revoke.$Shape;
        }

        namespace Revoke {

            /** Properties of a Revoke. */
            interface $Properties {

                /** Revoke attempt */
                attempt?: (longrun.v1alpha1.Attempt.$Properties|null);

                /** Revoke reason */
                reason?: (string|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Revoke. */
            type $Shape = longrun.v1alpha1.Revoke.$Properties;
        }

        /**
         * Properties of a Drain.
         * @deprecated Use longrun.v1alpha1.Drain.$Properties instead.
         */
        interface IDrain extends longrun.v1alpha1.Drain.$Properties {
        }

        /** Represents a Drain. */
        class Drain {

            /**
             * Constructs a new Drain.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.Drain.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Drain reason. */
            reason: string;

            /**
             * Creates a new Drain instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Drain instance
             */
            static create(properties: longrun.v1alpha1.Drain.$Shape): longrun.v1alpha1.Drain & longrun.v1alpha1.Drain.$Shape;
            static create(properties?: longrun.v1alpha1.Drain.$Properties): longrun.v1alpha1.Drain;

            /**
             * Encodes the specified Drain message. Does not implicitly {@link longrun.v1alpha1.Drain.verify|verify} messages.
             * @param message Drain message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.Drain.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Drain message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.Drain & longrun.v1alpha1.Drain.$Shape} Drain
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.Drain & longrun.v1alpha1.Drain.$Shape;
        }

        namespace Drain {

            /** Properties of a Drain. */
            interface $Properties {

                /** Drain reason */
                reason?: (string|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Drain. */
            type $Shape = longrun.v1alpha1.Drain.$Properties;
        }

        /**
         * Properties of a Drained.
         * @deprecated Use longrun.v1alpha1.Drained.$Properties instead.
         */
        interface IDrained extends longrun.v1alpha1.Drained.$Properties {
        }

        /** Represents a Drained. */
        class Drained {

            /**
             * Constructs a new Drained.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.Drained.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /**
             * Creates a new Drained instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Drained instance
             */
            static create(properties: longrun.v1alpha1.Drained.$Shape): longrun.v1alpha1.Drained & longrun.v1alpha1.Drained.$Shape;
            static create(properties?: longrun.v1alpha1.Drained.$Properties): longrun.v1alpha1.Drained;

            /**
             * Encodes the specified Drained message. Does not implicitly {@link longrun.v1alpha1.Drained.verify|verify} messages.
             * @param message Drained message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.Drained.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Drained message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.Drained & longrun.v1alpha1.Drained.$Shape} Drained
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.Drained & longrun.v1alpha1.Drained.$Shape;
        }

        namespace Drained {

            /** Properties of a Drained. */
            interface $Properties {

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Drained. */
            type $Shape = longrun.v1alpha1.Drained.$Properties;
        }

        /**
         * Properties of a WatchRequest.
         * @deprecated Use longrun.v1alpha1.WatchRequest.$Properties instead.
         */
        interface IWatchRequest extends longrun.v1alpha1.WatchRequest.$Properties {
        }

        /** Represents a WatchRequest. */
        class WatchRequest {

            /**
             * Constructs a new WatchRequest.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.WatchRequest.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** WatchRequest intervalSeconds. */
            intervalSeconds: number;

            /**
             * Creates a new WatchRequest instance using the specified properties.
             * @param [properties] Properties to set
             * @returns WatchRequest instance
             */
            static create(properties: longrun.v1alpha1.WatchRequest.$Shape): longrun.v1alpha1.WatchRequest & longrun.v1alpha1.WatchRequest.$Shape;
            static create(properties?: longrun.v1alpha1.WatchRequest.$Properties): longrun.v1alpha1.WatchRequest;

            /**
             * Encodes the specified WatchRequest message. Does not implicitly {@link longrun.v1alpha1.WatchRequest.verify|verify} messages.
             * @param message WatchRequest message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.WatchRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a WatchRequest message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.WatchRequest & longrun.v1alpha1.WatchRequest.$Shape} WatchRequest
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.WatchRequest & longrun.v1alpha1.WatchRequest.$Shape;
        }

        namespace WatchRequest {

            /** Properties of a WatchRequest. */
            interface $Properties {

                /** WatchRequest intervalSeconds */
                intervalSeconds?: (number|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a WatchRequest. */
            type $Shape = longrun.v1alpha1.WatchRequest.$Properties;
        }

        /** Phase enum. */
        enum Phase {

            /** STARTING value */
            STARTING = 0,

            /** GENERATING value */
            GENERATING = 1,

            /** EXECUTING value */
            EXECUTING = 2,

            /** EVALUATING value */
            EVALUATING = 3,

            /** TRAINING value */
            TRAINING = 4,

            /** CHECKPOINTING value */
            CHECKPOINTING = 5,

            /** FINAL_EVALUATION value */
            FINAL_EVALUATION = 6,

            /** SUCCEEDED value */
            SUCCEEDED = 7,

            /** FAILED_RUN value */
            FAILED_RUN = 8,

            /** STOPPED value */
            STOPPED = 9,

            /** WARMING_UP value */
            WARMING_UP = 10
        }

        /**
         * Properties of a Status.
         * @deprecated Use longrun.v1alpha1.Status.$Properties instead.
         */
        interface IStatus extends longrun.v1alpha1.Status.$Properties {
        }

        /** Represents a Status. */
        class Status {

            /**
             * Constructs a new Status.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.Status.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Status phase. */
            phase: longrun.v1alpha1.Phase;

            /** Status iteration. */
            iteration: number;

            /** Status iterations. */
            iterations: number;

            /** Status phaseDone. */
            phaseDone: number;

            /** Status phaseTotal. */
            phaseTotal: number;

            /** Status phaseSeconds. */
            phaseSeconds: number;

            /** Status executions. */
            executions?: (longrun.v1alpha1.Executions.$Properties|null);

            /** Status actors. */
            actors: longrun.v1alpha1.ActorStatus.$Properties[];

            /** Status iterationJson. */
            iterationJson: string;

            /** Status message. */
            message: string;

            /** Status lineage. */
            lineage: string;

            /** Status reportPath. */
            reportPath: string;

            /** Status checkpoint. */
            checkpoint?: (longrun.v1alpha1.Checkpoint.$Properties|null);

            /** Status blocked. */
            blocked: string;

            /** Status evaluationJson. */
            evaluationJson: string;

            /** Status blockedSinceUnixMs. */
            blockedSinceUnixMs: number;

            /** Status generation. */
            generation?: (longrun.v1alpha1.Generation.$Properties|null);

            /**
             * Creates a new Status instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Status instance
             */
            static create(properties: longrun.v1alpha1.Status.$Shape): longrun.v1alpha1.Status & longrun.v1alpha1.Status.$Shape;
            static create(properties?: longrun.v1alpha1.Status.$Properties): longrun.v1alpha1.Status;

            /**
             * Encodes the specified Status message. Does not implicitly {@link longrun.v1alpha1.Status.verify|verify} messages.
             * @param message Status message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.Status.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Status message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.Status & longrun.v1alpha1.Status.$Shape} Status
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.Status & longrun.v1alpha1.Status.$Shape;
        }

        namespace Status {

            /** Properties of a Status. */
            interface $Properties {

                /** Status phase */
                phase?: (longrun.v1alpha1.Phase|null);

                /** Status iteration */
                iteration?: (number|null);

                /** Status iterations */
                iterations?: (number|null);

                /** Status phaseDone */
                phaseDone?: (number|null);

                /** Status phaseTotal */
                phaseTotal?: (number|null);

                /** Status phaseSeconds */
                phaseSeconds?: (number|null);

                /** Status executions */
                executions?: (longrun.v1alpha1.Executions.$Properties|null);

                /** Status actors */
                actors?: (longrun.v1alpha1.ActorStatus.$Properties[]|null);

                /** Status iterationJson */
                iterationJson?: (string|null);

                /** Status message */
                message?: (string|null);

                /** Status lineage */
                lineage?: (string|null);

                /** Status reportPath */
                reportPath?: (string|null);

                /** Status checkpoint */
                checkpoint?: (longrun.v1alpha1.Checkpoint.$Properties|null);

                /** Status blocked */
                blocked?: (string|null);

                /** Status evaluationJson */
                evaluationJson?: (string|null);

                /** Status blockedSinceUnixMs */
                blockedSinceUnixMs?: (number|null);

                /** Status generation */
                generation?: (longrun.v1alpha1.Generation.$Properties|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Status. */
            type $Shape = longrun.v1alpha1.Status.$Properties;
        }

        /**
         * Properties of a Generation.
         * @deprecated Use longrun.v1alpha1.Generation.$Properties instead.
         */
        interface IGeneration extends longrun.v1alpha1.Generation.$Properties {
        }

        /** Represents a Generation. */
        class Generation {

            /**
             * Constructs a new Generation.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.Generation.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Generation waitingPrompts. */
            waitingPrompts: number;

            /** Generation generators. */
            generators: longrun.v1alpha1.Generator.$Properties[];

            /**
             * Creates a new Generation instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Generation instance
             */
            static create(properties: longrun.v1alpha1.Generation.$Shape): longrun.v1alpha1.Generation & longrun.v1alpha1.Generation.$Shape;
            static create(properties?: longrun.v1alpha1.Generation.$Properties): longrun.v1alpha1.Generation;

            /**
             * Encodes the specified Generation message. Does not implicitly {@link longrun.v1alpha1.Generation.verify|verify} messages.
             * @param message Generation message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.Generation.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Generation message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.Generation & longrun.v1alpha1.Generation.$Shape} Generation
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.Generation & longrun.v1alpha1.Generation.$Shape;
        }

        namespace Generation {

            /** Properties of a Generation. */
            interface $Properties {

                /** Generation waitingPrompts */
                waitingPrompts?: (number|null);

                /** Generation generators */
                generators?: (longrun.v1alpha1.Generator.$Properties[]|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Generation. */
            type $Shape = longrun.v1alpha1.Generation.$Properties;
        }

        /**
         * Properties of a Generator.
         * @deprecated Use longrun.v1alpha1.Generator.$Properties instead.
         */
        interface IGenerator extends longrun.v1alpha1.Generator.$Properties {
        }

        /** Represents a Generator. */
        class Generator {

            /**
             * Constructs a new Generator.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.Generator.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Generator address. */
            address: string;

            /** Generator ready. */
            ready: boolean;

            /** Generator policyVersion. */
            policyVersion?: (number|null);

            /** Generator running. */
            running: number;

            /** Generator notUsedBecause. */
            notUsedBecause: string;

            /**
             * Creates a new Generator instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Generator instance
             */
            static create(properties: longrun.v1alpha1.Generator.$Shape): longrun.v1alpha1.Generator & longrun.v1alpha1.Generator.$Shape;
            static create(properties?: longrun.v1alpha1.Generator.$Properties): longrun.v1alpha1.Generator;

            /**
             * Encodes the specified Generator message. Does not implicitly {@link longrun.v1alpha1.Generator.verify|verify} messages.
             * @param message Generator message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.Generator.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Generator message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.Generator & longrun.v1alpha1.Generator.$Shape} Generator
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.Generator & longrun.v1alpha1.Generator.$Shape;
        }

        namespace Generator {

            /** Properties of a Generator. */
            interface $Properties {

                /** Generator address */
                address?: (string|null);

                /** Generator ready */
                ready?: (boolean|null);

                /** Generator policyVersion */
                policyVersion?: (number|null);

                /** Generator running */
                running?: (number|null);

                /** Generator notUsedBecause */
                notUsedBecause?: (string|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Generator. */
            type $Shape = longrun.v1alpha1.Generator.$Properties;
        }

        /**
         * Properties of an Executions.
         * @deprecated Use longrun.v1alpha1.Executions.$Properties instead.
         */
        interface IExecutions extends longrun.v1alpha1.Executions.$Properties {
        }

        /** Represents an Executions. */
        class Executions {

            /**
             * Constructs a new Executions.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.Executions.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Executions queued. */
            queued: number;

            /** Executions running. */
            running: number;

            /** Executions completed. */
            completed: number;

            /** Executions lost. */
            lost: number;

            /** Executions retried. */
            retried: number;

            /** Executions disrupted. */
            disrupted: number;

            /**
             * Creates a new Executions instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Executions instance
             */
            static create(properties: longrun.v1alpha1.Executions.$Shape): longrun.v1alpha1.Executions & longrun.v1alpha1.Executions.$Shape;
            static create(properties?: longrun.v1alpha1.Executions.$Properties): longrun.v1alpha1.Executions;

            /**
             * Encodes the specified Executions message. Does not implicitly {@link longrun.v1alpha1.Executions.verify|verify} messages.
             * @param message Executions message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.Executions.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes an Executions message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.Executions & longrun.v1alpha1.Executions.$Shape} Executions
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.Executions & longrun.v1alpha1.Executions.$Shape;
        }

        namespace Executions {

            /** Properties of an Executions. */
            interface $Properties {

                /** Executions queued */
                queued?: (number|null);

                /** Executions running */
                running?: (number|null);

                /** Executions completed */
                completed?: (number|null);

                /** Executions lost */
                lost?: (number|null);

                /** Executions retried */
                retried?: (number|null);

                /** Executions disrupted */
                disrupted?: (number|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of an Executions. */
            type $Shape = longrun.v1alpha1.Executions.$Properties;
        }

        /**
         * Properties of an ActorStatus.
         * @deprecated Use longrun.v1alpha1.ActorStatus.$Properties instead.
         */
        interface IActorStatus extends longrun.v1alpha1.ActorStatus.$Properties {
        }

        /** Represents an ActorStatus. */
        class ActorStatus {

            /**
             * Constructs a new ActorStatus.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.ActorStatus.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** ActorStatus name. */
            name: string;

            /** ActorStatus isolationLevel. */
            isolationLevel: string;

            /** ActorStatus slots. */
            slots: number;

            /** ActorStatus running. */
            running: number;

            /** ActorStatus connected. */
            connected: boolean;

            /** ActorStatus busyShare. */
            busyShare: number;

            /** ActorStatus draining. */
            draining: boolean;

            /**
             * Creates a new ActorStatus instance using the specified properties.
             * @param [properties] Properties to set
             * @returns ActorStatus instance
             */
            static create(properties: longrun.v1alpha1.ActorStatus.$Shape): longrun.v1alpha1.ActorStatus & longrun.v1alpha1.ActorStatus.$Shape;
            static create(properties?: longrun.v1alpha1.ActorStatus.$Properties): longrun.v1alpha1.ActorStatus;

            /**
             * Encodes the specified ActorStatus message. Does not implicitly {@link longrun.v1alpha1.ActorStatus.verify|verify} messages.
             * @param message ActorStatus message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.ActorStatus.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes an ActorStatus message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.ActorStatus & longrun.v1alpha1.ActorStatus.$Shape} ActorStatus
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.ActorStatus & longrun.v1alpha1.ActorStatus.$Shape;
        }

        namespace ActorStatus {

            /** Properties of an ActorStatus. */
            interface $Properties {

                /** ActorStatus name */
                name?: (string|null);

                /** ActorStatus isolationLevel */
                isolationLevel?: (string|null);

                /** ActorStatus slots */
                slots?: (number|null);

                /** ActorStatus running */
                running?: (number|null);

                /** ActorStatus connected */
                connected?: (boolean|null);

                /** ActorStatus busyShare */
                busyShare?: (number|null);

                /** ActorStatus draining */
                draining?: (boolean|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of an ActorStatus. */
            type $Shape = longrun.v1alpha1.ActorStatus.$Properties;
        }

        /**
         * Properties of a Checkpoint.
         * @deprecated Use longrun.v1alpha1.Checkpoint.$Properties instead.
         */
        interface ICheckpoint extends longrun.v1alpha1.Checkpoint.$Properties {
        }

        /** Represents a Checkpoint. */
        class Checkpoint {

            /**
             * Constructs a new Checkpoint.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.Checkpoint.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Checkpoint iteration. */
            iteration: number;

            /** Checkpoint digest. */
            digest: string;

            /** Checkpoint path. */
            path: string;

            /**
             * Creates a new Checkpoint instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Checkpoint instance
             */
            static create(properties: longrun.v1alpha1.Checkpoint.$Shape): longrun.v1alpha1.Checkpoint & longrun.v1alpha1.Checkpoint.$Shape;
            static create(properties?: longrun.v1alpha1.Checkpoint.$Properties): longrun.v1alpha1.Checkpoint;

            /**
             * Encodes the specified Checkpoint message. Does not implicitly {@link longrun.v1alpha1.Checkpoint.verify|verify} messages.
             * @param message Checkpoint message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.Checkpoint.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Checkpoint message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.Checkpoint & longrun.v1alpha1.Checkpoint.$Shape} Checkpoint
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.Checkpoint & longrun.v1alpha1.Checkpoint.$Shape;
        }

        namespace Checkpoint {

            /** Properties of a Checkpoint. */
            interface $Properties {

                /** Checkpoint iteration */
                iteration?: (number|null);

                /** Checkpoint digest */
                digest?: (string|null);

                /** Checkpoint path */
                path?: (string|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Checkpoint. */
            type $Shape = longrun.v1alpha1.Checkpoint.$Properties;
        }

        /**
         * Properties of a DrainActorsRequest.
         * @deprecated Use longrun.v1alpha1.DrainActorsRequest.$Properties instead.
         */
        interface IDrainActorsRequest extends longrun.v1alpha1.DrainActorsRequest.$Properties {
        }

        /** Represents a DrainActorsRequest. */
        class DrainActorsRequest {

            /**
             * Constructs a new DrainActorsRequest.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.DrainActorsRequest.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** DrainActorsRequest actors. */
            actors: string[];

            /** DrainActorsRequest reason. */
            reason: string;

            /**
             * Creates a new DrainActorsRequest instance using the specified properties.
             * @param [properties] Properties to set
             * @returns DrainActorsRequest instance
             */
            static create(properties: longrun.v1alpha1.DrainActorsRequest.$Shape): longrun.v1alpha1.DrainActorsRequest & longrun.v1alpha1.DrainActorsRequest.$Shape;
            static create(properties?: longrun.v1alpha1.DrainActorsRequest.$Properties): longrun.v1alpha1.DrainActorsRequest;

            /**
             * Encodes the specified DrainActorsRequest message. Does not implicitly {@link longrun.v1alpha1.DrainActorsRequest.verify|verify} messages.
             * @param message DrainActorsRequest message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.DrainActorsRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a DrainActorsRequest message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.DrainActorsRequest & longrun.v1alpha1.DrainActorsRequest.$Shape} DrainActorsRequest
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.DrainActorsRequest & longrun.v1alpha1.DrainActorsRequest.$Shape;
        }

        namespace DrainActorsRequest {

            /** Properties of a DrainActorsRequest. */
            interface $Properties {

                /** DrainActorsRequest actors */
                actors?: (string[]|null);

                /** DrainActorsRequest reason */
                reason?: (string|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a DrainActorsRequest. */
            type $Shape = longrun.v1alpha1.DrainActorsRequest.$Properties;
        }

        /**
         * Properties of a DrainActorsResponse.
         * @deprecated Use longrun.v1alpha1.DrainActorsResponse.$Properties instead.
         */
        interface IDrainActorsResponse extends longrun.v1alpha1.DrainActorsResponse.$Properties {
        }

        /** Represents a DrainActorsResponse. */
        class DrainActorsResponse {

            /**
             * Constructs a new DrainActorsResponse.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.DrainActorsResponse.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** DrainActorsResponse notConnected. */
            notConnected: string[];

            /**
             * Creates a new DrainActorsResponse instance using the specified properties.
             * @param [properties] Properties to set
             * @returns DrainActorsResponse instance
             */
            static create(properties: longrun.v1alpha1.DrainActorsResponse.$Shape): longrun.v1alpha1.DrainActorsResponse & longrun.v1alpha1.DrainActorsResponse.$Shape;
            static create(properties?: longrun.v1alpha1.DrainActorsResponse.$Properties): longrun.v1alpha1.DrainActorsResponse;

            /**
             * Encodes the specified DrainActorsResponse message. Does not implicitly {@link longrun.v1alpha1.DrainActorsResponse.verify|verify} messages.
             * @param message DrainActorsResponse message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.DrainActorsResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a DrainActorsResponse message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.DrainActorsResponse & longrun.v1alpha1.DrainActorsResponse.$Shape} DrainActorsResponse
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.DrainActorsResponse & longrun.v1alpha1.DrainActorsResponse.$Shape;
        }

        namespace DrainActorsResponse {

            /** Properties of a DrainActorsResponse. */
            interface $Properties {

                /** DrainActorsResponse notConnected */
                notConnected?: (string[]|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a DrainActorsResponse. */
            type $Shape = longrun.v1alpha1.DrainActorsResponse.$Properties;
        }

        /**
         * Properties of a SuspendRequest.
         * @deprecated Use longrun.v1alpha1.SuspendRequest.$Properties instead.
         */
        interface ISuspendRequest extends longrun.v1alpha1.SuspendRequest.$Properties {
        }

        /** Represents a SuspendRequest. */
        class SuspendRequest {

            /**
             * Constructs a new SuspendRequest.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.SuspendRequest.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** SuspendRequest reason. */
            reason: string;

            /** SuspendRequest drainSeconds. */
            drainSeconds: number;

            /**
             * Creates a new SuspendRequest instance using the specified properties.
             * @param [properties] Properties to set
             * @returns SuspendRequest instance
             */
            static create(properties: longrun.v1alpha1.SuspendRequest.$Shape): longrun.v1alpha1.SuspendRequest & longrun.v1alpha1.SuspendRequest.$Shape;
            static create(properties?: longrun.v1alpha1.SuspendRequest.$Properties): longrun.v1alpha1.SuspendRequest;

            /**
             * Encodes the specified SuspendRequest message. Does not implicitly {@link longrun.v1alpha1.SuspendRequest.verify|verify} messages.
             * @param message SuspendRequest message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.SuspendRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a SuspendRequest message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.SuspendRequest & longrun.v1alpha1.SuspendRequest.$Shape} SuspendRequest
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.SuspendRequest & longrun.v1alpha1.SuspendRequest.$Shape;
        }

        namespace SuspendRequest {

            /** Properties of a SuspendRequest. */
            interface $Properties {

                /** SuspendRequest reason */
                reason?: (string|null);

                /** SuspendRequest drainSeconds */
                drainSeconds?: (number|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a SuspendRequest. */
            type $Shape = longrun.v1alpha1.SuspendRequest.$Properties;
        }

        /**
         * Properties of a SuspendResponse.
         * @deprecated Use longrun.v1alpha1.SuspendResponse.$Properties instead.
         */
        interface ISuspendResponse extends longrun.v1alpha1.SuspendResponse.$Properties {
        }

        /** Represents a SuspendResponse. */
        class SuspendResponse {

            /**
             * Constructs a new SuspendResponse.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.SuspendResponse.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** SuspendResponse checkpoint. */
            checkpoint?: (longrun.v1alpha1.Checkpoint.$Properties|null);

            /** SuspendResponse running. */
            running: number;

            /**
             * Creates a new SuspendResponse instance using the specified properties.
             * @param [properties] Properties to set
             * @returns SuspendResponse instance
             */
            static create(properties: longrun.v1alpha1.SuspendResponse.$Shape): longrun.v1alpha1.SuspendResponse & longrun.v1alpha1.SuspendResponse.$Shape;
            static create(properties?: longrun.v1alpha1.SuspendResponse.$Properties): longrun.v1alpha1.SuspendResponse;

            /**
             * Encodes the specified SuspendResponse message. Does not implicitly {@link longrun.v1alpha1.SuspendResponse.verify|verify} messages.
             * @param message SuspendResponse message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.SuspendResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a SuspendResponse message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.SuspendResponse & longrun.v1alpha1.SuspendResponse.$Shape} SuspendResponse
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.SuspendResponse & longrun.v1alpha1.SuspendResponse.$Shape;
        }

        namespace SuspendResponse {

            /** Properties of a SuspendResponse. */
            interface $Properties {

                /** SuspendResponse checkpoint */
                checkpoint?: (longrun.v1alpha1.Checkpoint.$Properties|null);

                /** SuspendResponse running */
                running?: (number|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a SuspendResponse. */
            type $Shape = longrun.v1alpha1.SuspendResponse.$Properties;
        }

        /**
         * Properties of a Termination.
         * @deprecated Use longrun.v1alpha1.Termination.$Properties instead.
         */
        interface ITermination extends longrun.v1alpha1.Termination.$Properties {
        }

        /** Represents a Termination. */
        class Termination {

            /**
             * Constructs a new Termination.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.Termination.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** Termination actor. */
            actor: string;

            /** Termination slot. */
            slot: number;

            /** Termination reason. */
            reason: string;

            /** Termination exitCode. */
            exitCode: number;

            /** Termination finishedUnixMs. */
            finishedUnixMs: number;

            /**
             * Creates a new Termination instance using the specified properties.
             * @param [properties] Properties to set
             * @returns Termination instance
             */
            static create(properties: longrun.v1alpha1.Termination.$Shape): longrun.v1alpha1.Termination & longrun.v1alpha1.Termination.$Shape;
            static create(properties?: longrun.v1alpha1.Termination.$Properties): longrun.v1alpha1.Termination;

            /**
             * Encodes the specified Termination message. Does not implicitly {@link longrun.v1alpha1.Termination.verify|verify} messages.
             * @param message Termination message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.Termination.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a Termination message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.Termination & longrun.v1alpha1.Termination.$Shape} Termination
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.Termination & longrun.v1alpha1.Termination.$Shape;
        }

        namespace Termination {

            /** Properties of a Termination. */
            interface $Properties {

                /** Termination actor */
                actor?: (string|null);

                /** Termination slot */
                slot?: (number|null);

                /** Termination reason */
                reason?: (string|null);

                /** Termination exitCode */
                exitCode?: (number|null);

                /** Termination finishedUnixMs */
                finishedUnixMs?: (number|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a Termination. */
            type $Shape = longrun.v1alpha1.Termination.$Properties;
        }

        /**
         * Properties of a ReportTerminationsRequest.
         * @deprecated Use longrun.v1alpha1.ReportTerminationsRequest.$Properties instead.
         */
        interface IReportTerminationsRequest extends longrun.v1alpha1.ReportTerminationsRequest.$Properties {
        }

        /** Represents a ReportTerminationsRequest. */
        class ReportTerminationsRequest {

            /**
             * Constructs a new ReportTerminationsRequest.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.ReportTerminationsRequest.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** ReportTerminationsRequest terminations. */
            terminations: longrun.v1alpha1.Termination.$Properties[];

            /** ReportTerminationsRequest disrupted. */
            disrupted: string[];

            /**
             * Creates a new ReportTerminationsRequest instance using the specified properties.
             * @param [properties] Properties to set
             * @returns ReportTerminationsRequest instance
             */
            static create(properties: longrun.v1alpha1.ReportTerminationsRequest.$Shape): longrun.v1alpha1.ReportTerminationsRequest & longrun.v1alpha1.ReportTerminationsRequest.$Shape;
            static create(properties?: longrun.v1alpha1.ReportTerminationsRequest.$Properties): longrun.v1alpha1.ReportTerminationsRequest;

            /**
             * Encodes the specified ReportTerminationsRequest message. Does not implicitly {@link longrun.v1alpha1.ReportTerminationsRequest.verify|verify} messages.
             * @param message ReportTerminationsRequest message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.ReportTerminationsRequest.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a ReportTerminationsRequest message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.ReportTerminationsRequest & longrun.v1alpha1.ReportTerminationsRequest.$Shape} ReportTerminationsRequest
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.ReportTerminationsRequest & longrun.v1alpha1.ReportTerminationsRequest.$Shape;
        }

        namespace ReportTerminationsRequest {

            /** Properties of a ReportTerminationsRequest. */
            interface $Properties {

                /** ReportTerminationsRequest terminations */
                terminations?: (longrun.v1alpha1.Termination.$Properties[]|null);

                /** ReportTerminationsRequest disrupted */
                disrupted?: (string[]|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a ReportTerminationsRequest. */
            type $Shape = longrun.v1alpha1.ReportTerminationsRequest.$Properties;
        }

        /**
         * Properties of a ReportTerminationsResponse.
         * @deprecated Use longrun.v1alpha1.ReportTerminationsResponse.$Properties instead.
         */
        interface IReportTerminationsResponse extends longrun.v1alpha1.ReportTerminationsResponse.$Properties {
        }

        /** Represents a ReportTerminationsResponse. */
        class ReportTerminationsResponse {

            /**
             * Constructs a new ReportTerminationsResponse.
             * @param [properties] Properties to set
             */
            constructor(properties?: longrun.v1alpha1.ReportTerminationsResponse.$Properties);

            /** Unknown fields preserved while decoding when enabled */
            $unknowns?: Uint8Array[];

            /** ReportTerminationsResponse outOfMemory. */
            outOfMemory: number;

            /**
             * Creates a new ReportTerminationsResponse instance using the specified properties.
             * @param [properties] Properties to set
             * @returns ReportTerminationsResponse instance
             */
            static create(properties: longrun.v1alpha1.ReportTerminationsResponse.$Shape): longrun.v1alpha1.ReportTerminationsResponse & longrun.v1alpha1.ReportTerminationsResponse.$Shape;
            static create(properties?: longrun.v1alpha1.ReportTerminationsResponse.$Properties): longrun.v1alpha1.ReportTerminationsResponse;

            /**
             * Encodes the specified ReportTerminationsResponse message. Does not implicitly {@link longrun.v1alpha1.ReportTerminationsResponse.verify|verify} messages.
             * @param message ReportTerminationsResponse message or plain object to encode
             * @param [writer] Writer to encode to
             * @returns Writer
             */
            static encode(message: longrun.v1alpha1.ReportTerminationsResponse.$Properties, writer?: $protobuf.Writer): $protobuf.Writer;

            /**
             * Decodes a ReportTerminationsResponse message from the specified reader or buffer.
             * @param reader Reader or buffer to decode from
             * @param [length] Message length if known beforehand
             * @returns {longrun.v1alpha1.ReportTerminationsResponse & longrun.v1alpha1.ReportTerminationsResponse.$Shape} ReportTerminationsResponse
             * @throws {Error} If the payload is not a reader or valid buffer
             * @throws {$protobuf.util.ProtocolError} If required fields are missing
             */
            static decode(reader: ($protobuf.Reader|Uint8Array), length?: number): longrun.v1alpha1.ReportTerminationsResponse & longrun.v1alpha1.ReportTerminationsResponse.$Shape;
        }

        namespace ReportTerminationsResponse {

            /** Properties of a ReportTerminationsResponse. */
            interface $Properties {

                /** ReportTerminationsResponse outOfMemory */
                outOfMemory?: (number|null);

                /** Unknown fields preserved while decoding when enabled */
                $unknowns?: Uint8Array[];
            }

            /** Shape of a ReportTerminationsResponse. */
            type $Shape = longrun.v1alpha1.ReportTerminationsResponse.$Properties;
        }
    }
}
