// Generated from longrun.proto by proto/generate.ts. Do not edit.
/*eslint-disable block-scoped-var, id-length, no-control-regex, no-magic-numbers, no-mixed-operators, no-prototype-builtins, no-redeclare, no-shadow, no-var, sort-vars, default-case, jsdoc/require-param*/
import $protobuf from "protobufjs/minimal.js";

const $Reader = $protobuf.Reader, $Writer = $protobuf.Writer, $util = $protobuf.util;
const $Object = $util.global.Object, $undefined = $util.global.undefined, $Error = $util.global.Error, $RangeError = $util.global.RangeError;

const $root = $protobuf.roots["default"] || ($protobuf.roots["default"] = {});

export const longrun = $root.longrun = (() => {

    const longrun = {};

    longrun.v1alpha1 = (function() {

        const v1alpha1 = {};

        v1alpha1.FromActor = (function() {

            const FromActor = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            FromActor.prototype.hello = null;
            FromActor.prototype.ready = null;
            FromActor.prototype.heartbeat = null;
            FromActor.prototype.result = null;
            FromActor.prototype.chunk = null;
            FromActor.prototype.drained = null;

            let $oneOfFields;

            $Object.defineProperty(FromActor.prototype, "message", {
                get: $util.oneOfGetter($oneOfFields = ["hello", "ready", "heartbeat", "result", "chunk", "drained"]),
                set: $util.oneOfSetter($oneOfFields)
            });

            FromActor.create = function(properties) {
                return new FromActor(properties);
            };

            FromActor.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.hello != null && $Object.hasOwnProperty.call(message, "hello"))
                    $root.longrun.v1alpha1.Hello.encode(message.hello, writer.uint32(10).fork(), _depth + 1).ldelim();
                if (message.ready != null && $Object.hasOwnProperty.call(message, "ready"))
                    $root.longrun.v1alpha1.Ready.encode(message.ready, writer.uint32(18).fork(), _depth + 1).ldelim();
                if (message.heartbeat != null && $Object.hasOwnProperty.call(message, "heartbeat"))
                    $root.longrun.v1alpha1.Heartbeat.encode(message.heartbeat, writer.uint32(26).fork(), _depth + 1).ldelim();
                if (message.result != null && $Object.hasOwnProperty.call(message, "result"))
                    $root.longrun.v1alpha1.ResultHeader.encode(message.result, writer.uint32(34).fork(), _depth + 1).ldelim();
                if (message.chunk != null && $Object.hasOwnProperty.call(message, "chunk"))
                    $root.longrun.v1alpha1.SubmissionChunk.encode(message.chunk, writer.uint32(42).fork(), _depth + 1).ldelim();
                if (message.drained != null && $Object.hasOwnProperty.call(message, "drained"))
                    $root.longrun.v1alpha1.Drained.encode(message.drained, writer.uint32(50).fork(), _depth + 1).ldelim();
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            FromActor.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.FromActor();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            message.hello = $root.longrun.v1alpha1.Hello.decode(reader, reader.size(), $undefined, _depth + 1, message.hello);
                            message.message = "hello";
                            continue;
                        }
                    case 2: {
                            if (wireType !== 2)
                                break;
                            message.ready = $root.longrun.v1alpha1.Ready.decode(reader, reader.size(), $undefined, _depth + 1, message.ready);
                            message.message = "ready";
                            continue;
                        }
                    case 3: {
                            if (wireType !== 2)
                                break;
                            message.heartbeat = $root.longrun.v1alpha1.Heartbeat.decode(reader, reader.size(), $undefined, _depth + 1, message.heartbeat);
                            message.message = "heartbeat";
                            continue;
                        }
                    case 4: {
                            if (wireType !== 2)
                                break;
                            message.result = $root.longrun.v1alpha1.ResultHeader.decode(reader, reader.size(), $undefined, _depth + 1, message.result);
                            message.message = "result";
                            continue;
                        }
                    case 5: {
                            if (wireType !== 2)
                                break;
                            message.chunk = $root.longrun.v1alpha1.SubmissionChunk.decode(reader, reader.size(), $undefined, _depth + 1, message.chunk);
                            message.message = "chunk";
                            continue;
                        }
                    case 6: {
                            if (wireType !== 2)
                                break;
                            message.drained = $root.longrun.v1alpha1.Drained.decode(reader, reader.size(), $undefined, _depth + 1, message.drained);
                            message.message = "drained";
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return FromActor;
        })();

        v1alpha1.FromLearner = (function() {

            const FromLearner = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            FromLearner.prototype.welcome = null;
            FromLearner.prototype.lease = null;
            FromLearner.prototype.ack = null;
            FromLearner.prototype.revoke = null;
            FromLearner.prototype.drain = null;

            let $oneOfFields;

            $Object.defineProperty(FromLearner.prototype, "message", {
                get: $util.oneOfGetter($oneOfFields = ["welcome", "lease", "ack", "revoke", "drain"]),
                set: $util.oneOfSetter($oneOfFields)
            });

            FromLearner.create = function(properties) {
                return new FromLearner(properties);
            };

            FromLearner.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.welcome != null && $Object.hasOwnProperty.call(message, "welcome"))
                    $root.longrun.v1alpha1.Welcome.encode(message.welcome, writer.uint32(10).fork(), _depth + 1).ldelim();
                if (message.lease != null && $Object.hasOwnProperty.call(message, "lease"))
                    $root.longrun.v1alpha1.Lease.encode(message.lease, writer.uint32(18).fork(), _depth + 1).ldelim();
                if (message.ack != null && $Object.hasOwnProperty.call(message, "ack"))
                    $root.longrun.v1alpha1.Ack.encode(message.ack, writer.uint32(26).fork(), _depth + 1).ldelim();
                if (message.revoke != null && $Object.hasOwnProperty.call(message, "revoke"))
                    $root.longrun.v1alpha1.Revoke.encode(message.revoke, writer.uint32(34).fork(), _depth + 1).ldelim();
                if (message.drain != null && $Object.hasOwnProperty.call(message, "drain"))
                    $root.longrun.v1alpha1.Drain.encode(message.drain, writer.uint32(42).fork(), _depth + 1).ldelim();
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            FromLearner.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.FromLearner();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            message.welcome = $root.longrun.v1alpha1.Welcome.decode(reader, reader.size(), $undefined, _depth + 1, message.welcome);
                            message.message = "welcome";
                            continue;
                        }
                    case 2: {
                            if (wireType !== 2)
                                break;
                            message.lease = $root.longrun.v1alpha1.Lease.decode(reader, reader.size(), $undefined, _depth + 1, message.lease);
                            message.message = "lease";
                            continue;
                        }
                    case 3: {
                            if (wireType !== 2)
                                break;
                            message.ack = $root.longrun.v1alpha1.Ack.decode(reader, reader.size(), $undefined, _depth + 1, message.ack);
                            message.message = "ack";
                            continue;
                        }
                    case 4: {
                            if (wireType !== 2)
                                break;
                            message.revoke = $root.longrun.v1alpha1.Revoke.decode(reader, reader.size(), $undefined, _depth + 1, message.revoke);
                            message.message = "revoke";
                            continue;
                        }
                    case 5: {
                            if (wireType !== 2)
                                break;
                            message.drain = $root.longrun.v1alpha1.Drain.decode(reader, reader.size(), $undefined, _depth + 1, message.drain);
                            message.message = "drain";
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return FromLearner;
        })();

        v1alpha1.Hello = (function() {

            const Hello = function (properties) {
                this.holding = [];
                this.versions = {};
                this.capabilities = [];
                this.isolationMissing = [];
                this.packages = {};
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            Hello.prototype.protocolVersion = 0;
            Hello.prototype.actor = "";
            Hello.prototype.isolationLevel = "";
            Hello.prototype.slots = 0;
            Hello.prototype.pythonDigest = "";
            Hello.prototype.holding = $util.emptyArray;
            Hello.prototype.versions = $util.emptyObject;
            Hello.prototype.capabilities = $util.emptyArray;
            Hello.prototype.isolationMissing = $util.emptyArray;
            Hello.prototype.packages = $util.emptyObject;

            Hello.create = function(properties) {
                return new Hello(properties);
            };

            Hello.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.protocolVersion != null && $Object.hasOwnProperty.call(message, "protocolVersion") && message.protocolVersion !== 0)
                    writer.uint32(8).uint32(message.protocolVersion);
                if (message.actor != null && $Object.hasOwnProperty.call(message, "actor") && message.actor !== "")
                    writer.uint32(18).string(message.actor);
                if (message.isolationLevel != null && $Object.hasOwnProperty.call(message, "isolationLevel") && message.isolationLevel !== "")
                    writer.uint32(26).string(message.isolationLevel);
                if (message.slots != null && $Object.hasOwnProperty.call(message, "slots") && message.slots !== 0)
                    writer.uint32(32).uint32(message.slots);
                if (message.pythonDigest != null && $Object.hasOwnProperty.call(message, "pythonDigest") && message.pythonDigest !== "")
                    writer.uint32(42).string(message.pythonDigest);
                if (message.holding != null && message.holding.length)
                    for (let i = 0; i < message.holding.length; ++i)
                        $root.longrun.v1alpha1.Attempt.encode(message.holding[i], writer.uint32(50).fork(), _depth + 1).ldelim();
                if (message.versions != null && $Object.hasOwnProperty.call(message, "versions"))
                    for (let keys = $Object.keys(message.versions), i = 0; i < keys.length; ++i)
                        writer.uint32(58).fork().uint32(10).string(keys[i]).uint32(18).string(message.versions[keys[i]]).ldelim();
                if (message.capabilities != null && message.capabilities.length)
                    for (let i = 0; i < message.capabilities.length; ++i)
                        writer.uint32(66).string(message.capabilities[i]);
                if (message.isolationMissing != null && message.isolationMissing.length)
                    for (let i = 0; i < message.isolationMissing.length; ++i)
                        writer.uint32(74).string(message.isolationMissing[i]);
                if (message.packages != null && $Object.hasOwnProperty.call(message, "packages"))
                    for (let keys = $Object.keys(message.packages), i = 0; i < keys.length; ++i)
                        writer.uint32(82).fork().uint32(10).string(keys[i]).uint32(18).string(message.packages[keys[i]]).ldelim();
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            Hello.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, key, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.Hello();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.protocolVersion = value;
                            else
                                delete message.protocolVersion;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.actor = value;
                            else
                                delete message.actor;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.isolationLevel = value;
                            else
                                delete message.isolationLevel;
                            continue;
                        }
                    case 4: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.slots = value;
                            else
                                delete message.slots;
                            continue;
                        }
                    case 5: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.pythonDigest = value;
                            else
                                delete message.pythonDigest;
                            continue;
                        }
                    case 6: {
                            if (wireType !== 2)
                                break;
                            if (!(message.holding && message.holding.length))
                                message.holding = [];
                            message.holding.push($root.longrun.v1alpha1.Attempt.decode(reader, reader.size(), $undefined, _depth + 1));
                            continue;
                        }
                    case 7: {
                            if (wireType !== 2)
                                break;
                            if (message.versions === $util.emptyObject)
                                message.versions = {};
                            let end2 = reader.size() + reader.pos;
                            if (end2 > reader.len)
                                throw $RangeError("index out of range");
                            reader.len = end2;
                            key = "";
                            value = "";
                            while (reader.pos < end2) {
                                let tag2 = reader.tag();
                                wireType = tag2 & 7;
                                switch (tag2 >>>= 3) {
                                case 1:
                                    if (wireType !== 2)
                                        break;
                                    key = reader.stringVerify();
                                    continue;
                                case 2:
                                    if (wireType !== 2)
                                        break;
                                    value = reader.stringVerify();
                                    continue;
                                }
                                reader.skipType(wireType, _depth, tag2);
                            }
                            if (reader.pos !== end2)
                                throw $RangeError("index out of range");
                            reader.len = end;
                            if (key === "__proto__")
                                $util.makeProp(message.versions, key);
                            message.versions[key] = value;
                            continue;
                        }
                    case 8: {
                            if (wireType !== 2)
                                break;
                            if (!(message.capabilities && message.capabilities.length))
                                message.capabilities = [];
                            message.capabilities.push(reader.stringVerify());
                            continue;
                        }
                    case 9: {
                            if (wireType !== 2)
                                break;
                            if (!(message.isolationMissing && message.isolationMissing.length))
                                message.isolationMissing = [];
                            message.isolationMissing.push(reader.stringVerify());
                            continue;
                        }
                    case 10: {
                            if (wireType !== 2)
                                break;
                            if (message.packages === $util.emptyObject)
                                message.packages = {};
                            let end2 = reader.size() + reader.pos;
                            if (end2 > reader.len)
                                throw $RangeError("index out of range");
                            reader.len = end2;
                            key = "";
                            value = "";
                            while (reader.pos < end2) {
                                let tag2 = reader.tag();
                                wireType = tag2 & 7;
                                switch (tag2 >>>= 3) {
                                case 1:
                                    if (wireType !== 2)
                                        break;
                                    key = reader.stringVerify();
                                    continue;
                                case 2:
                                    if (wireType !== 2)
                                        break;
                                    value = reader.stringVerify();
                                    continue;
                                }
                                reader.skipType(wireType, _depth, tag2);
                            }
                            if (reader.pos !== end2)
                                throw $RangeError("index out of range");
                            reader.len = end;
                            if (key === "__proto__")
                                $util.makeProp(message.packages, key);
                            message.packages[key] = value;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Hello;
        })();

        v1alpha1.Attempt = (function() {

            const Attempt = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            Attempt.prototype.execution = "";
            Attempt.prototype.number = 0;
            Attempt.prototype.fence = "";

            Attempt.create = function(properties) {
                return new Attempt(properties);
            };

            Attempt.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.execution != null && $Object.hasOwnProperty.call(message, "execution") && message.execution !== "")
                    writer.uint32(10).string(message.execution);
                if (message.number != null && $Object.hasOwnProperty.call(message, "number") && message.number !== 0)
                    writer.uint32(16).uint32(message.number);
                if (message.fence != null && $Object.hasOwnProperty.call(message, "fence") && message.fence !== "")
                    writer.uint32(26).string(message.fence);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            Attempt.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.Attempt();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.execution = value;
                            else
                                delete message.execution;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.number = value;
                            else
                                delete message.number;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.fence = value;
                            else
                                delete message.fence;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Attempt;
        })();

        v1alpha1.Ready = (function() {

            const Ready = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            Ready.prototype.freeSlots = 0;
            Ready.prototype.draining = false;

            Ready.create = function(properties) {
                return new Ready(properties);
            };

            Ready.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.freeSlots != null && $Object.hasOwnProperty.call(message, "freeSlots") && message.freeSlots !== 0)
                    writer.uint32(8).uint32(message.freeSlots);
                if (message.draining != null && $Object.hasOwnProperty.call(message, "draining") && message.draining !== false)
                    writer.uint32(16).bool(message.draining);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            Ready.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.Ready();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.freeSlots = value;
                            else
                                delete message.freeSlots;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.bool())
                                message.draining = value;
                            else
                                delete message.draining;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Ready;
        })();

        v1alpha1.Welcome = (function() {

            const Welcome = function (properties) {
                this.revoked = [];
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            Welcome.prototype.protocolVersion = 0;
            Welcome.prototype.lineage = "";
            Welcome.prototype.heartbeatSeconds = 0;
            Welcome.prototype.leaseSeconds = 0;
            Welcome.prototype.idleSeconds = 0;
            Welcome.prototype.revoked = $util.emptyArray;

            Welcome.create = function(properties) {
                return new Welcome(properties);
            };

            Welcome.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.protocolVersion != null && $Object.hasOwnProperty.call(message, "protocolVersion") && message.protocolVersion !== 0)
                    writer.uint32(8).uint32(message.protocolVersion);
                if (message.lineage != null && $Object.hasOwnProperty.call(message, "lineage") && message.lineage !== "")
                    writer.uint32(18).string(message.lineage);
                if (message.heartbeatSeconds != null && $Object.hasOwnProperty.call(message, "heartbeatSeconds") && !$Object.is(message.heartbeatSeconds, 0))
                    writer.uint32(25).double(message.heartbeatSeconds);
                if (message.leaseSeconds != null && $Object.hasOwnProperty.call(message, "leaseSeconds") && !$Object.is(message.leaseSeconds, 0))
                    writer.uint32(33).double(message.leaseSeconds);
                if (message.idleSeconds != null && $Object.hasOwnProperty.call(message, "idleSeconds") && !$Object.is(message.idleSeconds, 0))
                    writer.uint32(41).double(message.idleSeconds);
                if (message.revoked != null && message.revoked.length)
                    for (let i = 0; i < message.revoked.length; ++i)
                        $root.longrun.v1alpha1.Attempt.encode(message.revoked[i], writer.uint32(50).fork(), _depth + 1).ldelim();
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            Welcome.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.Welcome();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.protocolVersion = value;
                            else
                                delete message.protocolVersion;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.lineage = value;
                            else
                                delete message.lineage;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 1)
                                break;
                            if (!$Object.is(value = reader.double(), 0))
                                message.heartbeatSeconds = value;
                            else
                                delete message.heartbeatSeconds;
                            continue;
                        }
                    case 4: {
                            if (wireType !== 1)
                                break;
                            if (!$Object.is(value = reader.double(), 0))
                                message.leaseSeconds = value;
                            else
                                delete message.leaseSeconds;
                            continue;
                        }
                    case 5: {
                            if (wireType !== 1)
                                break;
                            if (!$Object.is(value = reader.double(), 0))
                                message.idleSeconds = value;
                            else
                                delete message.idleSeconds;
                            continue;
                        }
                    case 6: {
                            if (wireType !== 2)
                                break;
                            if (!(message.revoked && message.revoked.length))
                                message.revoked = [];
                            message.revoked.push($root.longrun.v1alpha1.Attempt.decode(reader, reader.size(), $undefined, _depth + 1));
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Welcome;
        })();

        v1alpha1.Limits = (function() {

            const Limits = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            Limits.prototype.timeoutSeconds = 0;
            Limits.prototype.memoryBytes = 0;
            Limits.prototype.outputBytes = 0;
            Limits.prototype.keptOutputBytes = 0;
            Limits.prototype.scratchBytes = 0;
            Limits.prototype.scratchFiles = 0;
            Limits.prototype.processes = 0;
            Limits.prototype.submissionBytes = 0;

            Limits.create = function(properties) {
                return new Limits(properties);
            };

            Limits.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.timeoutSeconds != null && $Object.hasOwnProperty.call(message, "timeoutSeconds") && !$Object.is(message.timeoutSeconds, 0))
                    writer.uint32(9).double(message.timeoutSeconds);
                if (message.memoryBytes != null && $Object.hasOwnProperty.call(message, "memoryBytes") && (typeof message.memoryBytes === "object" ? message.memoryBytes.low || message.memoryBytes.high : message.memoryBytes !== 0))
                    writer.uint32(16).uint64(message.memoryBytes);
                if (message.outputBytes != null && $Object.hasOwnProperty.call(message, "outputBytes") && (typeof message.outputBytes === "object" ? message.outputBytes.low || message.outputBytes.high : message.outputBytes !== 0))
                    writer.uint32(24).uint64(message.outputBytes);
                if (message.keptOutputBytes != null && $Object.hasOwnProperty.call(message, "keptOutputBytes") && (typeof message.keptOutputBytes === "object" ? message.keptOutputBytes.low || message.keptOutputBytes.high : message.keptOutputBytes !== 0))
                    writer.uint32(32).uint64(message.keptOutputBytes);
                if (message.scratchBytes != null && $Object.hasOwnProperty.call(message, "scratchBytes") && (typeof message.scratchBytes === "object" ? message.scratchBytes.low || message.scratchBytes.high : message.scratchBytes !== 0))
                    writer.uint32(40).uint64(message.scratchBytes);
                if (message.scratchFiles != null && $Object.hasOwnProperty.call(message, "scratchFiles") && message.scratchFiles !== 0)
                    writer.uint32(48).uint32(message.scratchFiles);
                if (message.processes != null && $Object.hasOwnProperty.call(message, "processes") && message.processes !== 0)
                    writer.uint32(56).uint32(message.processes);
                if (message.submissionBytes != null && $Object.hasOwnProperty.call(message, "submissionBytes") && (typeof message.submissionBytes === "object" ? message.submissionBytes.low || message.submissionBytes.high : message.submissionBytes !== 0))
                    writer.uint32(64).uint64(message.submissionBytes);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            Limits.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.Limits();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 1)
                                break;
                            if (!$Object.is(value = reader.double(), 0))
                                message.timeoutSeconds = value;
                            else
                                delete message.timeoutSeconds;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            if ((value = Number(reader.uint64())) !== 0)
                                message.memoryBytes = value;
                            else
                                delete message.memoryBytes;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 0)
                                break;
                            if ((value = Number(reader.uint64())) !== 0)
                                message.outputBytes = value;
                            else
                                delete message.outputBytes;
                            continue;
                        }
                    case 4: {
                            if (wireType !== 0)
                                break;
                            if ((value = Number(reader.uint64())) !== 0)
                                message.keptOutputBytes = value;
                            else
                                delete message.keptOutputBytes;
                            continue;
                        }
                    case 5: {
                            if (wireType !== 0)
                                break;
                            if ((value = Number(reader.uint64())) !== 0)
                                message.scratchBytes = value;
                            else
                                delete message.scratchBytes;
                            continue;
                        }
                    case 6: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.scratchFiles = value;
                            else
                                delete message.scratchFiles;
                            continue;
                        }
                    case 7: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.processes = value;
                            else
                                delete message.processes;
                            continue;
                        }
                    case 8: {
                            if (wireType !== 0)
                                break;
                            if ((value = Number(reader.uint64())) !== 0)
                                message.submissionBytes = value;
                            else
                                delete message.submissionBytes;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Limits;
        })();

        v1alpha1.Lease = (function() {

            const Lease = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            Lease.prototype.attempt = null;
            Lease.prototype.task = "";
            Lease.prototype.program = $util.newBuffer([]);
            Lease.prototype.markerNonce = "";
            Lease.prototype.limits = null;
            Lease.prototype.seed = 0;

            Lease.create = function(properties) {
                return new Lease(properties);
            };

            Lease.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.attempt != null && $Object.hasOwnProperty.call(message, "attempt"))
                    $root.longrun.v1alpha1.Attempt.encode(message.attempt, writer.uint32(10).fork(), _depth + 1).ldelim();
                if (message.task != null && $Object.hasOwnProperty.call(message, "task") && message.task !== "")
                    writer.uint32(18).string(message.task);
                if (message.program != null && $Object.hasOwnProperty.call(message, "program") && message.program.length)
                    writer.uint32(26).bytes(message.program);
                if (message.markerNonce != null && $Object.hasOwnProperty.call(message, "markerNonce") && message.markerNonce !== "")
                    writer.uint32(34).string(message.markerNonce);
                if (message.limits != null && $Object.hasOwnProperty.call(message, "limits"))
                    $root.longrun.v1alpha1.Limits.encode(message.limits, writer.uint32(42).fork(), _depth + 1).ldelim();
                if (message.seed != null && $Object.hasOwnProperty.call(message, "seed") && (typeof message.seed === "object" ? message.seed.low || message.seed.high : message.seed !== 0))
                    writer.uint32(48).uint64(message.seed);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            Lease.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.Lease();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            message.attempt = $root.longrun.v1alpha1.Attempt.decode(reader, reader.size(), $undefined, _depth + 1, message.attempt);
                            continue;
                        }
                    case 2: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.task = value;
                            else
                                delete message.task;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.bytes()).length)
                                message.program = value;
                            else
                                delete message.program;
                            continue;
                        }
                    case 4: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.markerNonce = value;
                            else
                                delete message.markerNonce;
                            continue;
                        }
                    case 5: {
                            if (wireType !== 2)
                                break;
                            message.limits = $root.longrun.v1alpha1.Limits.decode(reader, reader.size(), $undefined, _depth + 1, message.limits);
                            continue;
                        }
                    case 6: {
                            if (wireType !== 0)
                                break;
                            if ((value = Number(reader.uint64())) !== 0)
                                message.seed = value;
                            else
                                delete message.seed;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Lease;
        })();

        v1alpha1.Progress = (function() {

            const Progress = function (properties) {
                this.markers = [];
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            Progress.prototype.attempt = null;
            Progress.prototype.elapsedSeconds = 0;
            Progress.prototype.cpuSeconds = 0;
            Progress.prototype.memoryBytes = 0;
            Progress.prototype.markers = $util.emptyArray;

            Progress.create = function(properties) {
                return new Progress(properties);
            };

            Progress.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.attempt != null && $Object.hasOwnProperty.call(message, "attempt"))
                    $root.longrun.v1alpha1.Attempt.encode(message.attempt, writer.uint32(10).fork(), _depth + 1).ldelim();
                if (message.elapsedSeconds != null && $Object.hasOwnProperty.call(message, "elapsedSeconds") && !$Object.is(message.elapsedSeconds, 0))
                    writer.uint32(17).double(message.elapsedSeconds);
                if (message.cpuSeconds != null && $Object.hasOwnProperty.call(message, "cpuSeconds") && !$Object.is(message.cpuSeconds, 0))
                    writer.uint32(25).double(message.cpuSeconds);
                if (message.memoryBytes != null && $Object.hasOwnProperty.call(message, "memoryBytes") && (typeof message.memoryBytes === "object" ? message.memoryBytes.low || message.memoryBytes.high : message.memoryBytes !== 0))
                    writer.uint32(32).uint64(message.memoryBytes);
                if (message.markers != null && message.markers.length)
                    for (let i = 0; i < message.markers.length; ++i)
                        writer.uint32(42).string(message.markers[i]);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            Progress.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.Progress();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            message.attempt = $root.longrun.v1alpha1.Attempt.decode(reader, reader.size(), $undefined, _depth + 1, message.attempt);
                            continue;
                        }
                    case 2: {
                            if (wireType !== 1)
                                break;
                            if (!$Object.is(value = reader.double(), 0))
                                message.elapsedSeconds = value;
                            else
                                delete message.elapsedSeconds;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 1)
                                break;
                            if (!$Object.is(value = reader.double(), 0))
                                message.cpuSeconds = value;
                            else
                                delete message.cpuSeconds;
                            continue;
                        }
                    case 4: {
                            if (wireType !== 0)
                                break;
                            if ((value = Number(reader.uint64())) !== 0)
                                message.memoryBytes = value;
                            else
                                delete message.memoryBytes;
                            continue;
                        }
                    case 5: {
                            if (wireType !== 2)
                                break;
                            if (!(message.markers && message.markers.length))
                                message.markers = [];
                            message.markers.push(reader.stringVerify());
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Progress;
        })();

        v1alpha1.Heartbeat = (function() {

            const Heartbeat = function (properties) {
                this.running = [];
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            Heartbeat.prototype.running = $util.emptyArray;
            Heartbeat.prototype.busySeconds = 0;
            Heartbeat.prototype.aliveSeconds = 0;

            Heartbeat.create = function(properties) {
                return new Heartbeat(properties);
            };

            Heartbeat.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.running != null && message.running.length)
                    for (let i = 0; i < message.running.length; ++i)
                        $root.longrun.v1alpha1.Progress.encode(message.running[i], writer.uint32(10).fork(), _depth + 1).ldelim();
                if (message.busySeconds != null && $Object.hasOwnProperty.call(message, "busySeconds") && !$Object.is(message.busySeconds, 0))
                    writer.uint32(17).double(message.busySeconds);
                if (message.aliveSeconds != null && $Object.hasOwnProperty.call(message, "aliveSeconds") && !$Object.is(message.aliveSeconds, 0))
                    writer.uint32(25).double(message.aliveSeconds);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            Heartbeat.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.Heartbeat();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            if (!(message.running && message.running.length))
                                message.running = [];
                            message.running.push($root.longrun.v1alpha1.Progress.decode(reader, reader.size(), $undefined, _depth + 1));
                            continue;
                        }
                    case 2: {
                            if (wireType !== 1)
                                break;
                            if (!$Object.is(value = reader.double(), 0))
                                message.busySeconds = value;
                            else
                                delete message.busySeconds;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 1)
                                break;
                            if (!$Object.is(value = reader.double(), 0))
                                message.aliveSeconds = value;
                            else
                                delete message.aliveSeconds;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Heartbeat;
        })();

        v1alpha1.Outcome = (function() {
            const valuesById = $Object.create(null), values = $Object.create(valuesById);
            values[valuesById[0] = "OUTCOME_UNSPECIFIED"] = 0;
            values[valuesById[1] = "COMPLETED"] = 1;
            values[valuesById[2] = "FAILED"] = 2;
            values[valuesById[3] = "TIMED_OUT"] = 3;
            values[valuesById[4] = "OUT_OF_MEMORY"] = 4;
            values[valuesById[5] = "OUTPUT_LIMIT"] = 5;
            values[valuesById[6] = "LOST"] = 6;
            return values;
        })();

        v1alpha1.Marker = (function() {

            const Marker = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            Marker.prototype.name = "";
            Marker.prototype.value = "";
            Marker.prototype.atSeconds = 0;

            Marker.create = function(properties) {
                return new Marker(properties);
            };

            Marker.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
                    writer.uint32(10).string(message.name);
                if (message.value != null && $Object.hasOwnProperty.call(message, "value") && message.value !== "")
                    writer.uint32(18).string(message.value);
                if (message.atSeconds != null && $Object.hasOwnProperty.call(message, "atSeconds") && !$Object.is(message.atSeconds, 0))
                    writer.uint32(25).double(message.atSeconds);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            Marker.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.Marker();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.name = value;
                            else
                                delete message.name;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.value = value;
                            else
                                delete message.value;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 1)
                                break;
                            if (!$Object.is(value = reader.double(), 0))
                                message.atSeconds = value;
                            else
                                delete message.atSeconds;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Marker;
        })();

        v1alpha1.ResultHeader = (function() {

            const ResultHeader = function (properties) {
                this.markers = [];
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            ResultHeader.prototype.attempt = null;
            ResultHeader.prototype.outcome = 0;
            ResultHeader.prototype.exitStatus = 0;
            ResultHeader.prototype.signal = 0;
            ResultHeader.prototype.durationSeconds = 0;
            ResultHeader.prototype.cpuSeconds = 0;
            ResultHeader.prototype.peakMemoryBytes = 0;
            ResultHeader.prototype.markers = $util.emptyArray;
            ResultHeader.prototype.forgedMarkers = 0;
            ResultHeader.prototype.imitatedMarkers = 0;
            ResultHeader.prototype.terminalOutput = $util.newBuffer([]);
            ResultHeader.prototype.outputBytes = 0;
            ResultHeader.prototype.submission = null;
            ResultHeader.prototype.submissionRefused = "";
            ResultHeader.prototype.detail = "";
            ResultHeader.prototype.isolationLevel = "";
            ResultHeader.prototype.slot = null;
            ResultHeader.prototype.sandboxBroke = false;
            ResultHeader.prototype.disrupted = false;

            let $oneOfFields;

            // Virtual OneOf for proto3 optional field
            $Object.defineProperty(ResultHeader.prototype, "_slot", {
                get: $util.oneOfGetter($oneOfFields = ["slot"]),
                set: $util.oneOfSetter($oneOfFields)
            });

            ResultHeader.create = function(properties) {
                return new ResultHeader(properties);
            };

            ResultHeader.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.attempt != null && $Object.hasOwnProperty.call(message, "attempt"))
                    $root.longrun.v1alpha1.Attempt.encode(message.attempt, writer.uint32(10).fork(), _depth + 1).ldelim();
                if (message.outcome != null && $Object.hasOwnProperty.call(message, "outcome") && message.outcome !== 0)
                    writer.uint32(16).int32(message.outcome);
                if (message.exitStatus != null && $Object.hasOwnProperty.call(message, "exitStatus") && message.exitStatus !== 0)
                    writer.uint32(24).int32(message.exitStatus);
                if (message.signal != null && $Object.hasOwnProperty.call(message, "signal") && message.signal !== 0)
                    writer.uint32(32).int32(message.signal);
                if (message.durationSeconds != null && $Object.hasOwnProperty.call(message, "durationSeconds") && !$Object.is(message.durationSeconds, 0))
                    writer.uint32(41).double(message.durationSeconds);
                if (message.cpuSeconds != null && $Object.hasOwnProperty.call(message, "cpuSeconds") && !$Object.is(message.cpuSeconds, 0))
                    writer.uint32(49).double(message.cpuSeconds);
                if (message.peakMemoryBytes != null && $Object.hasOwnProperty.call(message, "peakMemoryBytes") && (typeof message.peakMemoryBytes === "object" ? message.peakMemoryBytes.low || message.peakMemoryBytes.high : message.peakMemoryBytes !== 0))
                    writer.uint32(56).uint64(message.peakMemoryBytes);
                if (message.markers != null && message.markers.length)
                    for (let i = 0; i < message.markers.length; ++i)
                        $root.longrun.v1alpha1.Marker.encode(message.markers[i], writer.uint32(66).fork(), _depth + 1).ldelim();
                if (message.forgedMarkers != null && $Object.hasOwnProperty.call(message, "forgedMarkers") && message.forgedMarkers !== 0)
                    writer.uint32(72).uint32(message.forgedMarkers);
                if (message.imitatedMarkers != null && $Object.hasOwnProperty.call(message, "imitatedMarkers") && message.imitatedMarkers !== 0)
                    writer.uint32(80).uint32(message.imitatedMarkers);
                if (message.terminalOutput != null && $Object.hasOwnProperty.call(message, "terminalOutput") && message.terminalOutput.length)
                    writer.uint32(90).bytes(message.terminalOutput);
                if (message.outputBytes != null && $Object.hasOwnProperty.call(message, "outputBytes") && (typeof message.outputBytes === "object" ? message.outputBytes.low || message.outputBytes.high : message.outputBytes !== 0))
                    writer.uint32(96).uint64(message.outputBytes);
                if (message.submission != null && $Object.hasOwnProperty.call(message, "submission"))
                    $root.longrun.v1alpha1.SubmissionInfo.encode(message.submission, writer.uint32(106).fork(), _depth + 1).ldelim();
                if (message.submissionRefused != null && $Object.hasOwnProperty.call(message, "submissionRefused") && message.submissionRefused !== "")
                    writer.uint32(114).string(message.submissionRefused);
                if (message.detail != null && $Object.hasOwnProperty.call(message, "detail") && message.detail !== "")
                    writer.uint32(122).string(message.detail);
                if (message.isolationLevel != null && $Object.hasOwnProperty.call(message, "isolationLevel") && message.isolationLevel !== "")
                    writer.uint32(130).string(message.isolationLevel);
                if (message.slot != null && $Object.hasOwnProperty.call(message, "slot"))
                    writer.uint32(136).uint32(message.slot);
                if (message.sandboxBroke != null && $Object.hasOwnProperty.call(message, "sandboxBroke") && message.sandboxBroke !== false)
                    writer.uint32(144).bool(message.sandboxBroke);
                if (message.disrupted != null && $Object.hasOwnProperty.call(message, "disrupted") && message.disrupted !== false)
                    writer.uint32(152).bool(message.disrupted);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            ResultHeader.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.ResultHeader();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            message.attempt = $root.longrun.v1alpha1.Attempt.decode(reader, reader.size(), $undefined, _depth + 1, message.attempt);
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.int32())
                                message.outcome = value;
                            else
                                delete message.outcome;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.int32())
                                message.exitStatus = value;
                            else
                                delete message.exitStatus;
                            continue;
                        }
                    case 4: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.int32())
                                message.signal = value;
                            else
                                delete message.signal;
                            continue;
                        }
                    case 5: {
                            if (wireType !== 1)
                                break;
                            if (!$Object.is(value = reader.double(), 0))
                                message.durationSeconds = value;
                            else
                                delete message.durationSeconds;
                            continue;
                        }
                    case 6: {
                            if (wireType !== 1)
                                break;
                            if (!$Object.is(value = reader.double(), 0))
                                message.cpuSeconds = value;
                            else
                                delete message.cpuSeconds;
                            continue;
                        }
                    case 7: {
                            if (wireType !== 0)
                                break;
                            if ((value = Number(reader.uint64())) !== 0)
                                message.peakMemoryBytes = value;
                            else
                                delete message.peakMemoryBytes;
                            continue;
                        }
                    case 8: {
                            if (wireType !== 2)
                                break;
                            if (!(message.markers && message.markers.length))
                                message.markers = [];
                            message.markers.push($root.longrun.v1alpha1.Marker.decode(reader, reader.size(), $undefined, _depth + 1));
                            continue;
                        }
                    case 9: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.forgedMarkers = value;
                            else
                                delete message.forgedMarkers;
                            continue;
                        }
                    case 10: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.imitatedMarkers = value;
                            else
                                delete message.imitatedMarkers;
                            continue;
                        }
                    case 11: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.bytes()).length)
                                message.terminalOutput = value;
                            else
                                delete message.terminalOutput;
                            continue;
                        }
                    case 12: {
                            if (wireType !== 0)
                                break;
                            if ((value = Number(reader.uint64())) !== 0)
                                message.outputBytes = value;
                            else
                                delete message.outputBytes;
                            continue;
                        }
                    case 13: {
                            if (wireType !== 2)
                                break;
                            message.submission = $root.longrun.v1alpha1.SubmissionInfo.decode(reader, reader.size(), $undefined, _depth + 1, message.submission);
                            continue;
                        }
                    case 14: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.submissionRefused = value;
                            else
                                delete message.submissionRefused;
                            continue;
                        }
                    case 15: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.detail = value;
                            else
                                delete message.detail;
                            continue;
                        }
                    case 16: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.isolationLevel = value;
                            else
                                delete message.isolationLevel;
                            continue;
                        }
                    case 17: {
                            if (wireType !== 0)
                                break;
                            message.slot = reader.uint32();
                            message._slot = "slot";
                            continue;
                        }
                    case 18: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.bool())
                                message.sandboxBroke = value;
                            else
                                delete message.sandboxBroke;
                            continue;
                        }
                    case 19: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.bool())
                                message.disrupted = value;
                            else
                                delete message.disrupted;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return ResultHeader;
        })();

        v1alpha1.SubmissionInfo = (function() {

            const SubmissionInfo = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            SubmissionInfo.prototype.bytes = 0;
            SubmissionInfo.prototype.sha256 = "";
            SubmissionInfo.prototype.compressedBytes = 0;
            SubmissionInfo.prototype.chunks = 0;

            SubmissionInfo.create = function(properties) {
                return new SubmissionInfo(properties);
            };

            SubmissionInfo.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.bytes != null && $Object.hasOwnProperty.call(message, "bytes") && (typeof message.bytes === "object" ? message.bytes.low || message.bytes.high : message.bytes !== 0))
                    writer.uint32(8).uint64(message.bytes);
                if (message.sha256 != null && $Object.hasOwnProperty.call(message, "sha256") && message.sha256 !== "")
                    writer.uint32(18).string(message.sha256);
                if (message.compressedBytes != null && $Object.hasOwnProperty.call(message, "compressedBytes") && (typeof message.compressedBytes === "object" ? message.compressedBytes.low || message.compressedBytes.high : message.compressedBytes !== 0))
                    writer.uint32(24).uint64(message.compressedBytes);
                if (message.chunks != null && $Object.hasOwnProperty.call(message, "chunks") && message.chunks !== 0)
                    writer.uint32(32).uint32(message.chunks);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            SubmissionInfo.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.SubmissionInfo();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 0)
                                break;
                            if ((value = Number(reader.uint64())) !== 0)
                                message.bytes = value;
                            else
                                delete message.bytes;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.sha256 = value;
                            else
                                delete message.sha256;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 0)
                                break;
                            if ((value = Number(reader.uint64())) !== 0)
                                message.compressedBytes = value;
                            else
                                delete message.compressedBytes;
                            continue;
                        }
                    case 4: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.chunks = value;
                            else
                                delete message.chunks;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return SubmissionInfo;
        })();

        v1alpha1.SubmissionChunk = (function() {

            const SubmissionChunk = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            SubmissionChunk.prototype.attempt = null;
            SubmissionChunk.prototype.index = 0;
            SubmissionChunk.prototype.data = $util.newBuffer([]);

            SubmissionChunk.create = function(properties) {
                return new SubmissionChunk(properties);
            };

            SubmissionChunk.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.attempt != null && $Object.hasOwnProperty.call(message, "attempt"))
                    $root.longrun.v1alpha1.Attempt.encode(message.attempt, writer.uint32(10).fork(), _depth + 1).ldelim();
                if (message.index != null && $Object.hasOwnProperty.call(message, "index") && message.index !== 0)
                    writer.uint32(16).uint32(message.index);
                if (message.data != null && $Object.hasOwnProperty.call(message, "data") && message.data.length)
                    writer.uint32(26).bytes(message.data);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            SubmissionChunk.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.SubmissionChunk();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            message.attempt = $root.longrun.v1alpha1.Attempt.decode(reader, reader.size(), $undefined, _depth + 1, message.attempt);
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.index = value;
                            else
                                delete message.index;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.bytes()).length)
                                message.data = value;
                            else
                                delete message.data;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return SubmissionChunk;
        })();

        v1alpha1.Ack = (function() {

            const Ack = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            Ack.prototype.attempt = null;
            Ack.prototype.accepted = false;
            Ack.prototype.reason = "";

            Ack.create = function(properties) {
                return new Ack(properties);
            };

            Ack.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.attempt != null && $Object.hasOwnProperty.call(message, "attempt"))
                    $root.longrun.v1alpha1.Attempt.encode(message.attempt, writer.uint32(10).fork(), _depth + 1).ldelim();
                if (message.accepted != null && $Object.hasOwnProperty.call(message, "accepted") && message.accepted !== false)
                    writer.uint32(16).bool(message.accepted);
                if (message.reason != null && $Object.hasOwnProperty.call(message, "reason") && message.reason !== "")
                    writer.uint32(26).string(message.reason);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            Ack.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.Ack();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            message.attempt = $root.longrun.v1alpha1.Attempt.decode(reader, reader.size(), $undefined, _depth + 1, message.attempt);
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.bool())
                                message.accepted = value;
                            else
                                delete message.accepted;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.reason = value;
                            else
                                delete message.reason;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Ack;
        })();

        v1alpha1.Revoke = (function() {

            const Revoke = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            Revoke.prototype.attempt = null;
            Revoke.prototype.reason = "";

            Revoke.create = function(properties) {
                return new Revoke(properties);
            };

            Revoke.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.attempt != null && $Object.hasOwnProperty.call(message, "attempt"))
                    $root.longrun.v1alpha1.Attempt.encode(message.attempt, writer.uint32(10).fork(), _depth + 1).ldelim();
                if (message.reason != null && $Object.hasOwnProperty.call(message, "reason") && message.reason !== "")
                    writer.uint32(18).string(message.reason);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            Revoke.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.Revoke();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            message.attempt = $root.longrun.v1alpha1.Attempt.decode(reader, reader.size(), $undefined, _depth + 1, message.attempt);
                            continue;
                        }
                    case 2: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.reason = value;
                            else
                                delete message.reason;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Revoke;
        })();

        v1alpha1.Drain = (function() {

            const Drain = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            Drain.prototype.reason = "";

            Drain.create = function(properties) {
                return new Drain(properties);
            };

            Drain.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.reason != null && $Object.hasOwnProperty.call(message, "reason") && message.reason !== "")
                    writer.uint32(10).string(message.reason);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            Drain.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.Drain();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.reason = value;
                            else
                                delete message.reason;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Drain;
        })();

        v1alpha1.Drained = (function() {

            const Drained = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            Drained.create = function(properties) {
                return new Drained(properties);
            };

            Drained.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            Drained.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.Drained();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    reader.skipType(tag & 7, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Drained;
        })();

        v1alpha1.WatchRequest = (function() {

            const WatchRequest = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            WatchRequest.prototype.intervalSeconds = 0;

            WatchRequest.create = function(properties) {
                return new WatchRequest(properties);
            };

            WatchRequest.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.intervalSeconds != null && $Object.hasOwnProperty.call(message, "intervalSeconds") && !$Object.is(message.intervalSeconds, 0))
                    writer.uint32(9).double(message.intervalSeconds);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            WatchRequest.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.WatchRequest();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 1)
                                break;
                            if (!$Object.is(value = reader.double(), 0))
                                message.intervalSeconds = value;
                            else
                                delete message.intervalSeconds;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return WatchRequest;
        })();

        v1alpha1.Phase = (function() {
            const valuesById = $Object.create(null), values = $Object.create(valuesById);
            values[valuesById[0] = "STARTING"] = 0;
            values[valuesById[1] = "GENERATING"] = 1;
            values[valuesById[2] = "EXECUTING"] = 2;
            values[valuesById[3] = "EVALUATING"] = 3;
            values[valuesById[4] = "TRAINING"] = 4;
            values[valuesById[5] = "CHECKPOINTING"] = 5;
            values[valuesById[6] = "FINAL_EVALUATION"] = 6;
            values[valuesById[7] = "SUCCEEDED"] = 7;
            values[valuesById[8] = "FAILED_RUN"] = 8;
            values[valuesById[9] = "STOPPED"] = 9;
            values[valuesById[10] = "WARMING_UP"] = 10;
            return values;
        })();

        v1alpha1.Status = (function() {

            const Status = function (properties) {
                this.actors = [];
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            Status.prototype.phase = 0;
            Status.prototype.iteration = 0;
            Status.prototype.iterations = 0;
            Status.prototype.phaseDone = 0;
            Status.prototype.phaseTotal = 0;
            Status.prototype.phaseSeconds = 0;
            Status.prototype.executions = null;
            Status.prototype.actors = $util.emptyArray;
            Status.prototype.iterationJson = "";
            Status.prototype.message = "";
            Status.prototype.lineage = "";
            Status.prototype.reportPath = "";
            Status.prototype.checkpoint = null;
            Status.prototype.blocked = "";
            Status.prototype.evaluationJson = "";
            Status.prototype.blockedSinceUnixMs = 0;
            Status.prototype.generation = null;

            Status.create = function(properties) {
                return new Status(properties);
            };

            Status.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.phase != null && $Object.hasOwnProperty.call(message, "phase") && message.phase !== 0)
                    writer.uint32(8).int32(message.phase);
                if (message.iteration != null && $Object.hasOwnProperty.call(message, "iteration") && message.iteration !== 0)
                    writer.uint32(16).uint32(message.iteration);
                if (message.iterations != null && $Object.hasOwnProperty.call(message, "iterations") && message.iterations !== 0)
                    writer.uint32(24).uint32(message.iterations);
                if (message.phaseDone != null && $Object.hasOwnProperty.call(message, "phaseDone") && message.phaseDone !== 0)
                    writer.uint32(32).uint32(message.phaseDone);
                if (message.phaseTotal != null && $Object.hasOwnProperty.call(message, "phaseTotal") && message.phaseTotal !== 0)
                    writer.uint32(40).uint32(message.phaseTotal);
                if (message.phaseSeconds != null && $Object.hasOwnProperty.call(message, "phaseSeconds") && !$Object.is(message.phaseSeconds, 0))
                    writer.uint32(49).double(message.phaseSeconds);
                if (message.executions != null && $Object.hasOwnProperty.call(message, "executions"))
                    $root.longrun.v1alpha1.Executions.encode(message.executions, writer.uint32(58).fork(), _depth + 1).ldelim();
                if (message.actors != null && message.actors.length)
                    for (let i = 0; i < message.actors.length; ++i)
                        $root.longrun.v1alpha1.ActorStatus.encode(message.actors[i], writer.uint32(66).fork(), _depth + 1).ldelim();
                if (message.iterationJson != null && $Object.hasOwnProperty.call(message, "iterationJson") && message.iterationJson !== "")
                    writer.uint32(74).string(message.iterationJson);
                if (message.message != null && $Object.hasOwnProperty.call(message, "message") && message.message !== "")
                    writer.uint32(82).string(message.message);
                if (message.lineage != null && $Object.hasOwnProperty.call(message, "lineage") && message.lineage !== "")
                    writer.uint32(90).string(message.lineage);
                if (message.reportPath != null && $Object.hasOwnProperty.call(message, "reportPath") && message.reportPath !== "")
                    writer.uint32(98).string(message.reportPath);
                if (message.checkpoint != null && $Object.hasOwnProperty.call(message, "checkpoint"))
                    $root.longrun.v1alpha1.Checkpoint.encode(message.checkpoint, writer.uint32(106).fork(), _depth + 1).ldelim();
                if (message.blocked != null && $Object.hasOwnProperty.call(message, "blocked") && message.blocked !== "")
                    writer.uint32(114).string(message.blocked);
                if (message.evaluationJson != null && $Object.hasOwnProperty.call(message, "evaluationJson") && message.evaluationJson !== "")
                    writer.uint32(122).string(message.evaluationJson);
                if (message.blockedSinceUnixMs != null && $Object.hasOwnProperty.call(message, "blockedSinceUnixMs") && (typeof message.blockedSinceUnixMs === "object" ? message.blockedSinceUnixMs.low || message.blockedSinceUnixMs.high : message.blockedSinceUnixMs !== 0))
                    writer.uint32(128).uint64(message.blockedSinceUnixMs);
                if (message.generation != null && $Object.hasOwnProperty.call(message, "generation"))
                    $root.longrun.v1alpha1.Generation.encode(message.generation, writer.uint32(138).fork(), _depth + 1).ldelim();
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            Status.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.Status();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.int32())
                                message.phase = value;
                            else
                                delete message.phase;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.iteration = value;
                            else
                                delete message.iteration;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.iterations = value;
                            else
                                delete message.iterations;
                            continue;
                        }
                    case 4: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.phaseDone = value;
                            else
                                delete message.phaseDone;
                            continue;
                        }
                    case 5: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.phaseTotal = value;
                            else
                                delete message.phaseTotal;
                            continue;
                        }
                    case 6: {
                            if (wireType !== 1)
                                break;
                            if (!$Object.is(value = reader.double(), 0))
                                message.phaseSeconds = value;
                            else
                                delete message.phaseSeconds;
                            continue;
                        }
                    case 7: {
                            if (wireType !== 2)
                                break;
                            message.executions = $root.longrun.v1alpha1.Executions.decode(reader, reader.size(), $undefined, _depth + 1, message.executions);
                            continue;
                        }
                    case 8: {
                            if (wireType !== 2)
                                break;
                            if (!(message.actors && message.actors.length))
                                message.actors = [];
                            message.actors.push($root.longrun.v1alpha1.ActorStatus.decode(reader, reader.size(), $undefined, _depth + 1));
                            continue;
                        }
                    case 9: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.iterationJson = value;
                            else
                                delete message.iterationJson;
                            continue;
                        }
                    case 10: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.message = value;
                            else
                                delete message.message;
                            continue;
                        }
                    case 11: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.lineage = value;
                            else
                                delete message.lineage;
                            continue;
                        }
                    case 12: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.reportPath = value;
                            else
                                delete message.reportPath;
                            continue;
                        }
                    case 13: {
                            if (wireType !== 2)
                                break;
                            message.checkpoint = $root.longrun.v1alpha1.Checkpoint.decode(reader, reader.size(), $undefined, _depth + 1, message.checkpoint);
                            continue;
                        }
                    case 14: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.blocked = value;
                            else
                                delete message.blocked;
                            continue;
                        }
                    case 15: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.evaluationJson = value;
                            else
                                delete message.evaluationJson;
                            continue;
                        }
                    case 16: {
                            if (wireType !== 0)
                                break;
                            if ((value = Number(reader.uint64())) !== 0)
                                message.blockedSinceUnixMs = value;
                            else
                                delete message.blockedSinceUnixMs;
                            continue;
                        }
                    case 17: {
                            if (wireType !== 2)
                                break;
                            message.generation = $root.longrun.v1alpha1.Generation.decode(reader, reader.size(), $undefined, _depth + 1, message.generation);
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Status;
        })();

        v1alpha1.Generation = (function() {

            const Generation = function (properties) {
                this.generators = [];
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            Generation.prototype.waitingPrompts = 0;
            Generation.prototype.generators = $util.emptyArray;

            Generation.create = function(properties) {
                return new Generation(properties);
            };

            Generation.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.waitingPrompts != null && $Object.hasOwnProperty.call(message, "waitingPrompts") && message.waitingPrompts !== 0)
                    writer.uint32(8).uint32(message.waitingPrompts);
                if (message.generators != null && message.generators.length)
                    for (let i = 0; i < message.generators.length; ++i)
                        $root.longrun.v1alpha1.Generator.encode(message.generators[i], writer.uint32(18).fork(), _depth + 1).ldelim();
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            Generation.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.Generation();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.waitingPrompts = value;
                            else
                                delete message.waitingPrompts;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 2)
                                break;
                            if (!(message.generators && message.generators.length))
                                message.generators = [];
                            message.generators.push($root.longrun.v1alpha1.Generator.decode(reader, reader.size(), $undefined, _depth + 1));
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Generation;
        })();

        v1alpha1.Generator = (function() {

            const Generator = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            Generator.prototype.address = "";
            Generator.prototype.ready = false;
            Generator.prototype.policyVersion = null;
            Generator.prototype.running = 0;
            Generator.prototype.notUsedBecause = "";

            let $oneOfFields;

            // Virtual OneOf for proto3 optional field
            $Object.defineProperty(Generator.prototype, "_policyVersion", {
                get: $util.oneOfGetter($oneOfFields = ["policyVersion"]),
                set: $util.oneOfSetter($oneOfFields)
            });

            Generator.create = function(properties) {
                return new Generator(properties);
            };

            Generator.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.address != null && $Object.hasOwnProperty.call(message, "address") && message.address !== "")
                    writer.uint32(10).string(message.address);
                if (message.ready != null && $Object.hasOwnProperty.call(message, "ready") && message.ready !== false)
                    writer.uint32(16).bool(message.ready);
                if (message.policyVersion != null && $Object.hasOwnProperty.call(message, "policyVersion"))
                    writer.uint32(24).uint64(message.policyVersion);
                if (message.running != null && $Object.hasOwnProperty.call(message, "running") && message.running !== 0)
                    writer.uint32(32).uint32(message.running);
                if (message.notUsedBecause != null && $Object.hasOwnProperty.call(message, "notUsedBecause") && message.notUsedBecause !== "")
                    writer.uint32(42).string(message.notUsedBecause);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            Generator.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.Generator();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.address = value;
                            else
                                delete message.address;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.bool())
                                message.ready = value;
                            else
                                delete message.ready;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 0)
                                break;
                            message.policyVersion = reader.uint64();
                            message._policyVersion = "policyVersion";
                            continue;
                        }
                    case 4: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.running = value;
                            else
                                delete message.running;
                            continue;
                        }
                    case 5: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.notUsedBecause = value;
                            else
                                delete message.notUsedBecause;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Generator;
        })();

        v1alpha1.Executions = (function() {

            const Executions = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            Executions.prototype.queued = 0;
            Executions.prototype.running = 0;
            Executions.prototype.completed = 0;
            Executions.prototype.lost = 0;
            Executions.prototype.retried = 0;
            Executions.prototype.disrupted = 0;

            Executions.create = function(properties) {
                return new Executions(properties);
            };

            Executions.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.queued != null && $Object.hasOwnProperty.call(message, "queued") && message.queued !== 0)
                    writer.uint32(8).uint32(message.queued);
                if (message.running != null && $Object.hasOwnProperty.call(message, "running") && message.running !== 0)
                    writer.uint32(16).uint32(message.running);
                if (message.completed != null && $Object.hasOwnProperty.call(message, "completed") && (typeof message.completed === "object" ? message.completed.low || message.completed.high : message.completed !== 0))
                    writer.uint32(24).uint64(message.completed);
                if (message.lost != null && $Object.hasOwnProperty.call(message, "lost") && (typeof message.lost === "object" ? message.lost.low || message.lost.high : message.lost !== 0))
                    writer.uint32(32).uint64(message.lost);
                if (message.retried != null && $Object.hasOwnProperty.call(message, "retried") && (typeof message.retried === "object" ? message.retried.low || message.retried.high : message.retried !== 0))
                    writer.uint32(40).uint64(message.retried);
                if (message.disrupted != null && $Object.hasOwnProperty.call(message, "disrupted") && (typeof message.disrupted === "object" ? message.disrupted.low || message.disrupted.high : message.disrupted !== 0))
                    writer.uint32(48).uint64(message.disrupted);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            Executions.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.Executions();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.queued = value;
                            else
                                delete message.queued;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.running = value;
                            else
                                delete message.running;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 0)
                                break;
                            if ((value = Number(reader.uint64())) !== 0)
                                message.completed = value;
                            else
                                delete message.completed;
                            continue;
                        }
                    case 4: {
                            if (wireType !== 0)
                                break;
                            if ((value = Number(reader.uint64())) !== 0)
                                message.lost = value;
                            else
                                delete message.lost;
                            continue;
                        }
                    case 5: {
                            if (wireType !== 0)
                                break;
                            if ((value = Number(reader.uint64())) !== 0)
                                message.retried = value;
                            else
                                delete message.retried;
                            continue;
                        }
                    case 6: {
                            if (wireType !== 0)
                                break;
                            if ((value = Number(reader.uint64())) !== 0)
                                message.disrupted = value;
                            else
                                delete message.disrupted;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Executions;
        })();

        v1alpha1.ActorStatus = (function() {

            const ActorStatus = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            ActorStatus.prototype.name = "";
            ActorStatus.prototype.isolationLevel = "";
            ActorStatus.prototype.slots = 0;
            ActorStatus.prototype.running = 0;
            ActorStatus.prototype.connected = false;
            ActorStatus.prototype.busyShare = 0;
            ActorStatus.prototype.draining = false;

            ActorStatus.create = function(properties) {
                return new ActorStatus(properties);
            };

            ActorStatus.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.name != null && $Object.hasOwnProperty.call(message, "name") && message.name !== "")
                    writer.uint32(10).string(message.name);
                if (message.isolationLevel != null && $Object.hasOwnProperty.call(message, "isolationLevel") && message.isolationLevel !== "")
                    writer.uint32(18).string(message.isolationLevel);
                if (message.slots != null && $Object.hasOwnProperty.call(message, "slots") && message.slots !== 0)
                    writer.uint32(24).uint32(message.slots);
                if (message.running != null && $Object.hasOwnProperty.call(message, "running") && message.running !== 0)
                    writer.uint32(32).uint32(message.running);
                if (message.connected != null && $Object.hasOwnProperty.call(message, "connected") && message.connected !== false)
                    writer.uint32(40).bool(message.connected);
                if (message.busyShare != null && $Object.hasOwnProperty.call(message, "busyShare") && !$Object.is(message.busyShare, 0))
                    writer.uint32(49).double(message.busyShare);
                if (message.draining != null && $Object.hasOwnProperty.call(message, "draining") && message.draining !== false)
                    writer.uint32(56).bool(message.draining);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            ActorStatus.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.ActorStatus();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.name = value;
                            else
                                delete message.name;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.isolationLevel = value;
                            else
                                delete message.isolationLevel;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.slots = value;
                            else
                                delete message.slots;
                            continue;
                        }
                    case 4: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.running = value;
                            else
                                delete message.running;
                            continue;
                        }
                    case 5: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.bool())
                                message.connected = value;
                            else
                                delete message.connected;
                            continue;
                        }
                    case 6: {
                            if (wireType !== 1)
                                break;
                            if (!$Object.is(value = reader.double(), 0))
                                message.busyShare = value;
                            else
                                delete message.busyShare;
                            continue;
                        }
                    case 7: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.bool())
                                message.draining = value;
                            else
                                delete message.draining;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return ActorStatus;
        })();

        v1alpha1.Checkpoint = (function() {

            const Checkpoint = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            Checkpoint.prototype.iteration = 0;
            Checkpoint.prototype.digest = "";
            Checkpoint.prototype.path = "";

            Checkpoint.create = function(properties) {
                return new Checkpoint(properties);
            };

            Checkpoint.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.iteration != null && $Object.hasOwnProperty.call(message, "iteration") && message.iteration !== 0)
                    writer.uint32(8).uint32(message.iteration);
                if (message.digest != null && $Object.hasOwnProperty.call(message, "digest") && message.digest !== "")
                    writer.uint32(18).string(message.digest);
                if (message.path != null && $Object.hasOwnProperty.call(message, "path") && message.path !== "")
                    writer.uint32(26).string(message.path);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            Checkpoint.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.Checkpoint();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.iteration = value;
                            else
                                delete message.iteration;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.digest = value;
                            else
                                delete message.digest;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.path = value;
                            else
                                delete message.path;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Checkpoint;
        })();

        v1alpha1.DrainActorsRequest = (function() {

            const DrainActorsRequest = function (properties) {
                this.actors = [];
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            DrainActorsRequest.prototype.actors = $util.emptyArray;
            DrainActorsRequest.prototype.reason = "";

            DrainActorsRequest.create = function(properties) {
                return new DrainActorsRequest(properties);
            };

            DrainActorsRequest.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.actors != null && message.actors.length)
                    for (let i = 0; i < message.actors.length; ++i)
                        writer.uint32(10).string(message.actors[i]);
                if (message.reason != null && $Object.hasOwnProperty.call(message, "reason") && message.reason !== "")
                    writer.uint32(18).string(message.reason);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            DrainActorsRequest.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.DrainActorsRequest();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            if (!(message.actors && message.actors.length))
                                message.actors = [];
                            message.actors.push(reader.stringVerify());
                            continue;
                        }
                    case 2: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.reason = value;
                            else
                                delete message.reason;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return DrainActorsRequest;
        })();

        v1alpha1.DrainActorsResponse = (function() {

            const DrainActorsResponse = function (properties) {
                this.notConnected = [];
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            DrainActorsResponse.prototype.notConnected = $util.emptyArray;

            DrainActorsResponse.create = function(properties) {
                return new DrainActorsResponse(properties);
            };

            DrainActorsResponse.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.notConnected != null && message.notConnected.length)
                    for (let i = 0; i < message.notConnected.length; ++i)
                        writer.uint32(10).string(message.notConnected[i]);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            DrainActorsResponse.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.DrainActorsResponse();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            if (!(message.notConnected && message.notConnected.length))
                                message.notConnected = [];
                            message.notConnected.push(reader.stringVerify());
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return DrainActorsResponse;
        })();

        v1alpha1.SuspendRequest = (function() {

            const SuspendRequest = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            SuspendRequest.prototype.reason = "";
            SuspendRequest.prototype.drainSeconds = 0;

            SuspendRequest.create = function(properties) {
                return new SuspendRequest(properties);
            };

            SuspendRequest.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.reason != null && $Object.hasOwnProperty.call(message, "reason") && message.reason !== "")
                    writer.uint32(10).string(message.reason);
                if (message.drainSeconds != null && $Object.hasOwnProperty.call(message, "drainSeconds") && !$Object.is(message.drainSeconds, 0))
                    writer.uint32(17).double(message.drainSeconds);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            SuspendRequest.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.SuspendRequest();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.reason = value;
                            else
                                delete message.reason;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 1)
                                break;
                            if (!$Object.is(value = reader.double(), 0))
                                message.drainSeconds = value;
                            else
                                delete message.drainSeconds;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return SuspendRequest;
        })();

        v1alpha1.SuspendResponse = (function() {

            const SuspendResponse = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            SuspendResponse.prototype.checkpoint = null;
            SuspendResponse.prototype.running = 0;

            SuspendResponse.create = function(properties) {
                return new SuspendResponse(properties);
            };

            SuspendResponse.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.checkpoint != null && $Object.hasOwnProperty.call(message, "checkpoint"))
                    $root.longrun.v1alpha1.Checkpoint.encode(message.checkpoint, writer.uint32(10).fork(), _depth + 1).ldelim();
                if (message.running != null && $Object.hasOwnProperty.call(message, "running") && message.running !== 0)
                    writer.uint32(16).uint32(message.running);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            SuspendResponse.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.SuspendResponse();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            message.checkpoint = $root.longrun.v1alpha1.Checkpoint.decode(reader, reader.size(), $undefined, _depth + 1, message.checkpoint);
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.running = value;
                            else
                                delete message.running;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return SuspendResponse;
        })();

        v1alpha1.Termination = (function() {

            const Termination = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            Termination.prototype.actor = "";
            Termination.prototype.slot = 0;
            Termination.prototype.reason = "";
            Termination.prototype.exitCode = 0;
            Termination.prototype.finishedUnixMs = 0;

            Termination.create = function(properties) {
                return new Termination(properties);
            };

            Termination.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.actor != null && $Object.hasOwnProperty.call(message, "actor") && message.actor !== "")
                    writer.uint32(10).string(message.actor);
                if (message.slot != null && $Object.hasOwnProperty.call(message, "slot") && message.slot !== 0)
                    writer.uint32(16).uint32(message.slot);
                if (message.reason != null && $Object.hasOwnProperty.call(message, "reason") && message.reason !== "")
                    writer.uint32(26).string(message.reason);
                if (message.exitCode != null && $Object.hasOwnProperty.call(message, "exitCode") && message.exitCode !== 0)
                    writer.uint32(32).int32(message.exitCode);
                if (message.finishedUnixMs != null && $Object.hasOwnProperty.call(message, "finishedUnixMs") && (typeof message.finishedUnixMs === "object" ? message.finishedUnixMs.low || message.finishedUnixMs.high : message.finishedUnixMs !== 0))
                    writer.uint32(40).uint64(message.finishedUnixMs);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            Termination.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.Termination();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.actor = value;
                            else
                                delete message.actor;
                            continue;
                        }
                    case 2: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.slot = value;
                            else
                                delete message.slot;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 2)
                                break;
                            if ((value = reader.stringVerify()).length)
                                message.reason = value;
                            else
                                delete message.reason;
                            continue;
                        }
                    case 4: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.int32())
                                message.exitCode = value;
                            else
                                delete message.exitCode;
                            continue;
                        }
                    case 5: {
                            if (wireType !== 0)
                                break;
                            if ((value = Number(reader.uint64())) !== 0)
                                message.finishedUnixMs = value;
                            else
                                delete message.finishedUnixMs;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return Termination;
        })();

        v1alpha1.ReportTerminationsRequest = (function() {

            const ReportTerminationsRequest = function (properties) {
                this.terminations = [];
                this.disrupted = [];
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            ReportTerminationsRequest.prototype.terminations = $util.emptyArray;
            ReportTerminationsRequest.prototype.disrupted = $util.emptyArray;

            ReportTerminationsRequest.create = function(properties) {
                return new ReportTerminationsRequest(properties);
            };

            ReportTerminationsRequest.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.terminations != null && message.terminations.length)
                    for (let i = 0; i < message.terminations.length; ++i)
                        $root.longrun.v1alpha1.Termination.encode(message.terminations[i], writer.uint32(10).fork(), _depth + 1).ldelim();
                if (message.disrupted != null && message.disrupted.length)
                    for (let i = 0; i < message.disrupted.length; ++i)
                        writer.uint32(18).string(message.disrupted[i]);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            ReportTerminationsRequest.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.ReportTerminationsRequest();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 2)
                                break;
                            if (!(message.terminations && message.terminations.length))
                                message.terminations = [];
                            message.terminations.push($root.longrun.v1alpha1.Termination.decode(reader, reader.size(), $undefined, _depth + 1));
                            continue;
                        }
                    case 2: {
                            if (wireType !== 2)
                                break;
                            if (!(message.disrupted && message.disrupted.length))
                                message.disrupted = [];
                            message.disrupted.push(reader.stringVerify());
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return ReportTerminationsRequest;
        })();

        v1alpha1.ReportTerminationsResponse = (function() {

            const ReportTerminationsResponse = function (properties) {
                if (properties)
                    for (let keys = $Object.keys(properties), i = 0; i < keys.length; ++i)
                        if (properties[keys[i]] != null && keys[i] !== "__proto__")
                            this[keys[i]] = properties[keys[i]];
            };

            ReportTerminationsResponse.prototype.outOfMemory = 0;

            ReportTerminationsResponse.create = function(properties) {
                return new ReportTerminationsResponse(properties);
            };

            ReportTerminationsResponse.encode = function (message, writer, _depth) {
                if (!writer)
                    writer = $Writer.create();
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                if (message.outOfMemory != null && $Object.hasOwnProperty.call(message, "outOfMemory") && message.outOfMemory !== 0)
                    writer.uint32(8).uint32(message.outOfMemory);
                if (message.$unknowns != null && $Object.hasOwnProperty.call(message, "$unknowns"))
                    for (let i = 0; i < message.$unknowns.length; ++i)
                        writer.raw(message.$unknowns[i]);
                return writer;
            };

            ReportTerminationsResponse.decode = function (reader, length, _end, _depth, _target) {
                if (!(reader instanceof $Reader))
                    reader = $Reader.create(reader);
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $Reader.recursionLimit)
                    throw $Error("max depth exceeded");
                let end, message, value;
                if (length === $undefined)
                    end = reader.len;
                else {
                    end = reader.pos + length;
                    if (end > reader.len)
                        throw $RangeError("index out of range");
                    length = reader.len;
                    reader.len = end;
                }
                message = _target || new $root.longrun.v1alpha1.ReportTerminationsResponse();
                while (reader.pos < end) {
                    let start = reader.pos;
                    let tag = reader.tag();
                    if (tag === _end) {
                        _end = $undefined;
                        break;
                    }
                    let wireType = tag & 7;
                    switch (tag >>>= 3) {
                    case 1: {
                            if (wireType !== 0)
                                break;
                            if (value = reader.uint32())
                                message.outOfMemory = value;
                            else
                                delete message.outOfMemory;
                            continue;
                        }
                    }
                    reader.skipType(wireType, _depth, tag);
                    if (!reader.discardUnknown) {
                        $util.makeProp(message, "$unknowns", false);
                        (message.$unknowns || (message.$unknowns = [])).push(reader.raw(start, reader.pos));
                    }
                }
                if (length !== $undefined) {
                    if (reader.pos !== end)
                        throw $RangeError("index out of range");
                    reader.len = length;
                }
                if (_end !== $undefined)
                    throw $Error("missing end group");
                return message;
            };

            return ReportTerminationsResponse;
        })();

        return v1alpha1;
    })();

    return longrun;
})();

export {
  $root as default
};
