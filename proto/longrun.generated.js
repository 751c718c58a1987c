// Generated from longrun.proto by proto/generate.ts. Do not edit.
/*eslint-disable block-scoped-var, id-length, no-control-regex, no-magic-numbers, no-mixed-operators, no-prototype-builtins, no-redeclare, no-shadow, no-var, sort-vars, default-case, jsdoc/require-param*/
import $protobuf from "protobufjs/minimal.js";

const $Reader = $protobuf.Reader, $Writer = $protobuf.Writer, $util = $protobuf.util;
const $Object = $util.global.Object, $undefined = $util.global.undefined, $Error = $util.global.Error, $RangeError = $util.global.RangeError, $TypeError = $util.global.TypeError, $Number = $util.global.Number, $String = $util.global.String, $Array = $util.global.Array, $isFinite = $util.global.isFinite, $parseInt = $util.global.parseInt, $BigInt = $util.global.BigInt, $Boolean = $util.global.Boolean;

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

            FromActor.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.FromActor)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.FromActor: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.FromActor();
                if (object.hello != null) {
                    if (!$util.isObject(object.hello))
                        throw $TypeError(".longrun.v1alpha1.FromActor.hello: object expected");
                    message.hello = $root.longrun.v1alpha1.Hello.fromObject(object.hello, _depth + 1);
                }
                if (object.ready != null) {
                    if (!$util.isObject(object.ready))
                        throw $TypeError(".longrun.v1alpha1.FromActor.ready: object expected");
                    message.ready = $root.longrun.v1alpha1.Ready.fromObject(object.ready, _depth + 1);
                }
                if (object.heartbeat != null) {
                    if (!$util.isObject(object.heartbeat))
                        throw $TypeError(".longrun.v1alpha1.FromActor.heartbeat: object expected");
                    message.heartbeat = $root.longrun.v1alpha1.Heartbeat.fromObject(object.heartbeat, _depth + 1);
                }
                if (object.result != null) {
                    if (!$util.isObject(object.result))
                        throw $TypeError(".longrun.v1alpha1.FromActor.result: object expected");
                    message.result = $root.longrun.v1alpha1.ResultHeader.fromObject(object.result, _depth + 1);
                }
                if (object.chunk != null) {
                    if (!$util.isObject(object.chunk))
                        throw $TypeError(".longrun.v1alpha1.FromActor.chunk: object expected");
                    message.chunk = $root.longrun.v1alpha1.SubmissionChunk.fromObject(object.chunk, _depth + 1);
                }
                if (object.drained != null) {
                    if (!$util.isObject(object.drained))
                        throw $TypeError(".longrun.v1alpha1.FromActor.drained: object expected");
                    message.drained = $root.longrun.v1alpha1.Drained.fromObject(object.drained, _depth + 1);
                }
                return message;
            };

            FromActor.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (message.hello != null && $Object.hasOwnProperty.call(message, "hello")) {
                    object.hello = $root.longrun.v1alpha1.Hello.toObject(message.hello, options, _depth + 1);
                    if (options.oneofs)
                        object.message = "hello";
                }
                if (message.ready != null && $Object.hasOwnProperty.call(message, "ready")) {
                    object.ready = $root.longrun.v1alpha1.Ready.toObject(message.ready, options, _depth + 1);
                    if (options.oneofs)
                        object.message = "ready";
                }
                if (message.heartbeat != null && $Object.hasOwnProperty.call(message, "heartbeat")) {
                    object.heartbeat = $root.longrun.v1alpha1.Heartbeat.toObject(message.heartbeat, options, _depth + 1);
                    if (options.oneofs)
                        object.message = "heartbeat";
                }
                if (message.result != null && $Object.hasOwnProperty.call(message, "result")) {
                    object.result = $root.longrun.v1alpha1.ResultHeader.toObject(message.result, options, _depth + 1);
                    if (options.oneofs)
                        object.message = "result";
                }
                if (message.chunk != null && $Object.hasOwnProperty.call(message, "chunk")) {
                    object.chunk = $root.longrun.v1alpha1.SubmissionChunk.toObject(message.chunk, options, _depth + 1);
                    if (options.oneofs)
                        object.message = "chunk";
                }
                if (message.drained != null && $Object.hasOwnProperty.call(message, "drained")) {
                    object.drained = $root.longrun.v1alpha1.Drained.toObject(message.drained, options, _depth + 1);
                    if (options.oneofs)
                        object.message = "drained";
                }
                return object;
            };

            FromActor.prototype.toJSON = function() {
                return FromActor.toObject(this, $protobuf.util.toJSONOptions);
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

            FromLearner.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.FromLearner)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.FromLearner: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.FromLearner();
                if (object.welcome != null) {
                    if (!$util.isObject(object.welcome))
                        throw $TypeError(".longrun.v1alpha1.FromLearner.welcome: object expected");
                    message.welcome = $root.longrun.v1alpha1.Welcome.fromObject(object.welcome, _depth + 1);
                }
                if (object.lease != null) {
                    if (!$util.isObject(object.lease))
                        throw $TypeError(".longrun.v1alpha1.FromLearner.lease: object expected");
                    message.lease = $root.longrun.v1alpha1.Lease.fromObject(object.lease, _depth + 1);
                }
                if (object.ack != null) {
                    if (!$util.isObject(object.ack))
                        throw $TypeError(".longrun.v1alpha1.FromLearner.ack: object expected");
                    message.ack = $root.longrun.v1alpha1.Ack.fromObject(object.ack, _depth + 1);
                }
                if (object.revoke != null) {
                    if (!$util.isObject(object.revoke))
                        throw $TypeError(".longrun.v1alpha1.FromLearner.revoke: object expected");
                    message.revoke = $root.longrun.v1alpha1.Revoke.fromObject(object.revoke, _depth + 1);
                }
                if (object.drain != null) {
                    if (!$util.isObject(object.drain))
                        throw $TypeError(".longrun.v1alpha1.FromLearner.drain: object expected");
                    message.drain = $root.longrun.v1alpha1.Drain.fromObject(object.drain, _depth + 1);
                }
                return message;
            };

            FromLearner.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (message.welcome != null && $Object.hasOwnProperty.call(message, "welcome")) {
                    object.welcome = $root.longrun.v1alpha1.Welcome.toObject(message.welcome, options, _depth + 1);
                    if (options.oneofs)
                        object.message = "welcome";
                }
                if (message.lease != null && $Object.hasOwnProperty.call(message, "lease")) {
                    object.lease = $root.longrun.v1alpha1.Lease.toObject(message.lease, options, _depth + 1);
                    if (options.oneofs)
                        object.message = "lease";
                }
                if (message.ack != null && $Object.hasOwnProperty.call(message, "ack")) {
                    object.ack = $root.longrun.v1alpha1.Ack.toObject(message.ack, options, _depth + 1);
                    if (options.oneofs)
                        object.message = "ack";
                }
                if (message.revoke != null && $Object.hasOwnProperty.call(message, "revoke")) {
                    object.revoke = $root.longrun.v1alpha1.Revoke.toObject(message.revoke, options, _depth + 1);
                    if (options.oneofs)
                        object.message = "revoke";
                }
                if (message.drain != null && $Object.hasOwnProperty.call(message, "drain")) {
                    object.drain = $root.longrun.v1alpha1.Drain.toObject(message.drain, options, _depth + 1);
                    if (options.oneofs)
                        object.message = "drain";
                }
                return object;
            };

            FromLearner.prototype.toJSON = function() {
                return FromLearner.toObject(this, $protobuf.util.toJSONOptions);
            };

            return FromLearner;
        })();

        v1alpha1.Hello = (function() {

            const Hello = function (properties) {
                this.holding = [];
                this.versions = {};
                this.capabilities = [];
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

            Hello.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.Hello)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.Hello: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.Hello();
                if (object.protocolVersion != null)
                    if ($Number(object.protocolVersion) !== 0)
                        message.protocolVersion = object.protocolVersion >>> 0;
                if (object.actor != null)
                    if (typeof object.actor !== "string" || object.actor.length)
                        message.actor = $String(object.actor);
                if (object.isolationLevel != null)
                    if (typeof object.isolationLevel !== "string" || object.isolationLevel.length)
                        message.isolationLevel = $String(object.isolationLevel);
                if (object.slots != null)
                    if ($Number(object.slots) !== 0)
                        message.slots = object.slots >>> 0;
                if (object.pythonDigest != null)
                    if (typeof object.pythonDigest !== "string" || object.pythonDigest.length)
                        message.pythonDigest = $String(object.pythonDigest);
                if (object.holding) {
                    if (!$Array.isArray(object.holding))
                        throw $TypeError(".longrun.v1alpha1.Hello.holding: array expected");
                    message.holding = $Array(object.holding.length);
                    for (let i = 0; i < object.holding.length; ++i) {
                        if (!$util.isObject(object.holding[i]))
                            throw $TypeError(".longrun.v1alpha1.Hello.holding: object expected");
                        message.holding[i] = $root.longrun.v1alpha1.Attempt.fromObject(object.holding[i], _depth + 1);
                    }
                }
                if (object.versions) {
                    if (!$util.isObject(object.versions))
                        throw $TypeError(".longrun.v1alpha1.Hello.versions: object expected");
                    message.versions = {};
                    for (let keys = $Object.keys(object.versions), i = 0; i < keys.length; ++i) {
                        if (keys[i] === "__proto__")
                            $util.makeProp(message.versions, keys[i]);
                        message.versions[keys[i]] = $String(object.versions[keys[i]]);
                    }
                }
                if (object.capabilities) {
                    if (!$Array.isArray(object.capabilities))
                        throw $TypeError(".longrun.v1alpha1.Hello.capabilities: array expected");
                    message.capabilities = $Array(object.capabilities.length);
                    for (let i = 0; i < object.capabilities.length; ++i)
                        message.capabilities[i] = $String(object.capabilities[i]);
                }
                return message;
            };

            Hello.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (options.arrays || options.defaults) {
                    object.holding = [];
                    object.capabilities = [];
                }
                if (options.objects || options.defaults)
                    object.versions = {};
                if (options.defaults) {
                    object.protocolVersion = 0;
                    object.actor = "";
                    object.isolationLevel = "";
                    object.slots = 0;
                    object.pythonDigest = "";
                }
                if (message.protocolVersion != null && $Object.hasOwnProperty.call(message, "protocolVersion"))
                    object.protocolVersion = message.protocolVersion;
                if (message.actor != null && $Object.hasOwnProperty.call(message, "actor"))
                    object.actor = message.actor;
                if (message.isolationLevel != null && $Object.hasOwnProperty.call(message, "isolationLevel"))
                    object.isolationLevel = message.isolationLevel;
                if (message.slots != null && $Object.hasOwnProperty.call(message, "slots"))
                    object.slots = message.slots;
                if (message.pythonDigest != null && $Object.hasOwnProperty.call(message, "pythonDigest"))
                    object.pythonDigest = message.pythonDigest;
                if (message.holding && message.holding.length) {
                    object.holding = $Array(message.holding.length);
                    for (let j = 0; j < message.holding.length; ++j)
                        object.holding[j] = $root.longrun.v1alpha1.Attempt.toObject(message.holding[j], options, _depth + 1);
                }
                let keys2;
                if (message.versions && (keys2 = $Object.keys(message.versions)).length) {
                    object.versions = {};
                    for (let j = 0; j < keys2.length; ++j) {
                        if (keys2[j] === "__proto__")
                            $util.makeProp(object.versions, keys2[j]);
                        object.versions[keys2[j]] = message.versions[keys2[j]];
                    }
                }
                if (message.capabilities && message.capabilities.length) {
                    object.capabilities = $Array(message.capabilities.length);
                    for (let j = 0; j < message.capabilities.length; ++j)
                        object.capabilities[j] = message.capabilities[j];
                }
                return object;
            };

            Hello.prototype.toJSON = function() {
                return Hello.toObject(this, $protobuf.util.toJSONOptions);
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

            Attempt.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.Attempt)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.Attempt: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.Attempt();
                if (object.execution != null)
                    if (typeof object.execution !== "string" || object.execution.length)
                        message.execution = $String(object.execution);
                if (object.number != null)
                    if ($Number(object.number) !== 0)
                        message.number = object.number >>> 0;
                if (object.fence != null)
                    if (typeof object.fence !== "string" || object.fence.length)
                        message.fence = $String(object.fence);
                return message;
            };

            Attempt.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (options.defaults) {
                    object.execution = "";
                    object.number = 0;
                    object.fence = "";
                }
                if (message.execution != null && $Object.hasOwnProperty.call(message, "execution"))
                    object.execution = message.execution;
                if (message.number != null && $Object.hasOwnProperty.call(message, "number"))
                    object.number = message.number;
                if (message.fence != null && $Object.hasOwnProperty.call(message, "fence"))
                    object.fence = message.fence;
                return object;
            };

            Attempt.prototype.toJSON = function() {
                return Attempt.toObject(this, $protobuf.util.toJSONOptions);
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

            Ready.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.Ready)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.Ready: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.Ready();
                if (object.freeSlots != null)
                    if ($Number(object.freeSlots) !== 0)
                        message.freeSlots = object.freeSlots >>> 0;
                return message;
            };

            Ready.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (options.defaults)
                    object.freeSlots = 0;
                if (message.freeSlots != null && $Object.hasOwnProperty.call(message, "freeSlots"))
                    object.freeSlots = message.freeSlots;
                return object;
            };

            Ready.prototype.toJSON = function() {
                return Ready.toObject(this, $protobuf.util.toJSONOptions);
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

            Welcome.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.Welcome)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.Welcome: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.Welcome();
                if (object.protocolVersion != null)
                    if ($Number(object.protocolVersion) !== 0)
                        message.protocolVersion = object.protocolVersion >>> 0;
                if (object.lineage != null)
                    if (typeof object.lineage !== "string" || object.lineage.length)
                        message.lineage = $String(object.lineage);
                if (object.heartbeatSeconds != null)
                    if (!$Object.is($Number(object.heartbeatSeconds), 0))
                        message.heartbeatSeconds = $Number(object.heartbeatSeconds);
                if (object.leaseSeconds != null)
                    if (!$Object.is($Number(object.leaseSeconds), 0))
                        message.leaseSeconds = $Number(object.leaseSeconds);
                if (object.idleSeconds != null)
                    if (!$Object.is($Number(object.idleSeconds), 0))
                        message.idleSeconds = $Number(object.idleSeconds);
                if (object.revoked) {
                    if (!$Array.isArray(object.revoked))
                        throw $TypeError(".longrun.v1alpha1.Welcome.revoked: array expected");
                    message.revoked = $Array(object.revoked.length);
                    for (let i = 0; i < object.revoked.length; ++i) {
                        if (!$util.isObject(object.revoked[i]))
                            throw $TypeError(".longrun.v1alpha1.Welcome.revoked: object expected");
                        message.revoked[i] = $root.longrun.v1alpha1.Attempt.fromObject(object.revoked[i], _depth + 1);
                    }
                }
                return message;
            };

            Welcome.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (options.arrays || options.defaults)
                    object.revoked = [];
                if (options.defaults) {
                    object.protocolVersion = 0;
                    object.lineage = "";
                    object.heartbeatSeconds = 0;
                    object.leaseSeconds = 0;
                    object.idleSeconds = 0;
                }
                if (message.protocolVersion != null && $Object.hasOwnProperty.call(message, "protocolVersion"))
                    object.protocolVersion = message.protocolVersion;
                if (message.lineage != null && $Object.hasOwnProperty.call(message, "lineage"))
                    object.lineage = message.lineage;
                if (message.heartbeatSeconds != null && $Object.hasOwnProperty.call(message, "heartbeatSeconds"))
                    object.heartbeatSeconds = options.json && !$isFinite(message.heartbeatSeconds) ? $String(message.heartbeatSeconds) : message.heartbeatSeconds;
                if (message.leaseSeconds != null && $Object.hasOwnProperty.call(message, "leaseSeconds"))
                    object.leaseSeconds = options.json && !$isFinite(message.leaseSeconds) ? $String(message.leaseSeconds) : message.leaseSeconds;
                if (message.idleSeconds != null && $Object.hasOwnProperty.call(message, "idleSeconds"))
                    object.idleSeconds = options.json && !$isFinite(message.idleSeconds) ? $String(message.idleSeconds) : message.idleSeconds;
                if (message.revoked && message.revoked.length) {
                    object.revoked = $Array(message.revoked.length);
                    for (let j = 0; j < message.revoked.length; ++j)
                        object.revoked[j] = $root.longrun.v1alpha1.Attempt.toObject(message.revoked[j], options, _depth + 1);
                }
                return object;
            };

            Welcome.prototype.toJSON = function() {
                return Welcome.toObject(this, $protobuf.util.toJSONOptions);
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
            Limits.prototype.memoryBytes = $util.Long ? $util.Long.fromBits(0,0,true) : 0;
            Limits.prototype.outputBytes = $util.Long ? $util.Long.fromBits(0,0,true) : 0;
            Limits.prototype.keptOutputBytes = $util.Long ? $util.Long.fromBits(0,0,true) : 0;
            Limits.prototype.scratchBytes = $util.Long ? $util.Long.fromBits(0,0,true) : 0;
            Limits.prototype.scratchFiles = 0;
            Limits.prototype.processes = 0;
            Limits.prototype.submissionBytes = $util.Long ? $util.Long.fromBits(0,0,true) : 0;

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
                            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
                                message.memoryBytes = value;
                            else
                                delete message.memoryBytes;
                            continue;
                        }
                    case 3: {
                            if (wireType !== 0)
                                break;
                            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
                                message.outputBytes = value;
                            else
                                delete message.outputBytes;
                            continue;
                        }
                    case 4: {
                            if (wireType !== 0)
                                break;
                            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
                                message.keptOutputBytes = value;
                            else
                                delete message.keptOutputBytes;
                            continue;
                        }
                    case 5: {
                            if (wireType !== 0)
                                break;
                            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
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
                            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
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

            Limits.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.Limits)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.Limits: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.Limits();
                if (object.timeoutSeconds != null)
                    if (!$Object.is($Number(object.timeoutSeconds), 0))
                        message.timeoutSeconds = $Number(object.timeoutSeconds);
                if (object.memoryBytes != null)
                    if (typeof object.memoryBytes === "object" ? object.memoryBytes.low || object.memoryBytes.high : $Number(object.memoryBytes) !== 0)
                        if ($util.Long)
                            message.memoryBytes = $util.Long.fromValue(object.memoryBytes, true);
                        else if (typeof object.memoryBytes === "string")
                            message.memoryBytes = $parseInt(object.memoryBytes, 10);
                        else if (typeof object.memoryBytes === "number")
                            message.memoryBytes = object.memoryBytes;
                        else if (typeof object.memoryBytes === "object")
                            message.memoryBytes = new $util.LongBits(object.memoryBytes.low >>> 0, object.memoryBytes.high >>> 0).toNumber(true);
                if (object.outputBytes != null)
                    if (typeof object.outputBytes === "object" ? object.outputBytes.low || object.outputBytes.high : $Number(object.outputBytes) !== 0)
                        if ($util.Long)
                            message.outputBytes = $util.Long.fromValue(object.outputBytes, true);
                        else if (typeof object.outputBytes === "string")
                            message.outputBytes = $parseInt(object.outputBytes, 10);
                        else if (typeof object.outputBytes === "number")
                            message.outputBytes = object.outputBytes;
                        else if (typeof object.outputBytes === "object")
                            message.outputBytes = new $util.LongBits(object.outputBytes.low >>> 0, object.outputBytes.high >>> 0).toNumber(true);
                if (object.keptOutputBytes != null)
                    if (typeof object.keptOutputBytes === "object" ? object.keptOutputBytes.low || object.keptOutputBytes.high : $Number(object.keptOutputBytes) !== 0)
                        if ($util.Long)
                            message.keptOutputBytes = $util.Long.fromValue(object.keptOutputBytes, true);
                        else if (typeof object.keptOutputBytes === "string")
                            message.keptOutputBytes = $parseInt(object.keptOutputBytes, 10);
                        else if (typeof object.keptOutputBytes === "number")
                            message.keptOutputBytes = object.keptOutputBytes;
                        else if (typeof object.keptOutputBytes === "object")
                            message.keptOutputBytes = new $util.LongBits(object.keptOutputBytes.low >>> 0, object.keptOutputBytes.high >>> 0).toNumber(true);
                if (object.scratchBytes != null)
                    if (typeof object.scratchBytes === "object" ? object.scratchBytes.low || object.scratchBytes.high : $Number(object.scratchBytes) !== 0)
                        if ($util.Long)
                            message.scratchBytes = $util.Long.fromValue(object.scratchBytes, true);
                        else if (typeof object.scratchBytes === "string")
                            message.scratchBytes = $parseInt(object.scratchBytes, 10);
                        else if (typeof object.scratchBytes === "number")
                            message.scratchBytes = object.scratchBytes;
                        else if (typeof object.scratchBytes === "object")
                            message.scratchBytes = new $util.LongBits(object.scratchBytes.low >>> 0, object.scratchBytes.high >>> 0).toNumber(true);
                if (object.scratchFiles != null)
                    if ($Number(object.scratchFiles) !== 0)
                        message.scratchFiles = object.scratchFiles >>> 0;
                if (object.processes != null)
                    if ($Number(object.processes) !== 0)
                        message.processes = object.processes >>> 0;
                if (object.submissionBytes != null)
                    if (typeof object.submissionBytes === "object" ? object.submissionBytes.low || object.submissionBytes.high : $Number(object.submissionBytes) !== 0)
                        if ($util.Long)
                            message.submissionBytes = $util.Long.fromValue(object.submissionBytes, true);
                        else if (typeof object.submissionBytes === "string")
                            message.submissionBytes = $parseInt(object.submissionBytes, 10);
                        else if (typeof object.submissionBytes === "number")
                            message.submissionBytes = object.submissionBytes;
                        else if (typeof object.submissionBytes === "object")
                            message.submissionBytes = new $util.LongBits(object.submissionBytes.low >>> 0, object.submissionBytes.high >>> 0).toNumber(true);
                return message;
            };

            Limits.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (options.defaults) {
                    object.timeoutSeconds = 0;
                    if ($util.Long) {
                        let long = new $util.Long(0, 0, true);
                        object.memoryBytes = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
                    } else
                        object.memoryBytes = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
                    if ($util.Long) {
                        let long = new $util.Long(0, 0, true);
                        object.outputBytes = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
                    } else
                        object.outputBytes = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
                    if ($util.Long) {
                        let long = new $util.Long(0, 0, true);
                        object.keptOutputBytes = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
                    } else
                        object.keptOutputBytes = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
                    if ($util.Long) {
                        let long = new $util.Long(0, 0, true);
                        object.scratchBytes = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
                    } else
                        object.scratchBytes = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
                    object.scratchFiles = 0;
                    object.processes = 0;
                    if ($util.Long) {
                        let long = new $util.Long(0, 0, true);
                        object.submissionBytes = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
                    } else
                        object.submissionBytes = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
                }
                if (message.timeoutSeconds != null && $Object.hasOwnProperty.call(message, "timeoutSeconds"))
                    object.timeoutSeconds = options.json && !$isFinite(message.timeoutSeconds) ? $String(message.timeoutSeconds) : message.timeoutSeconds;
                if (message.memoryBytes != null && $Object.hasOwnProperty.call(message, "memoryBytes"))
                    if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
                        object.memoryBytes = typeof message.memoryBytes === "number" ? $BigInt(message.memoryBytes) : $util.Long.fromBits(message.memoryBytes.low >>> 0, message.memoryBytes.high >>> 0, true).toBigInt();
                    else if (typeof message.memoryBytes === "number")
                        object.memoryBytes = options.longs === $String ? $String(message.memoryBytes) : message.memoryBytes;
                    else
                        object.memoryBytes = options.longs === $String ? $util.Long.prototype.toString.call(message.memoryBytes) : options.longs === $Number ? new $util.LongBits(message.memoryBytes.low >>> 0, message.memoryBytes.high >>> 0).toNumber(true) : message.memoryBytes;
                if (message.outputBytes != null && $Object.hasOwnProperty.call(message, "outputBytes"))
                    if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
                        object.outputBytes = typeof message.outputBytes === "number" ? $BigInt(message.outputBytes) : $util.Long.fromBits(message.outputBytes.low >>> 0, message.outputBytes.high >>> 0, true).toBigInt();
                    else if (typeof message.outputBytes === "number")
                        object.outputBytes = options.longs === $String ? $String(message.outputBytes) : message.outputBytes;
                    else
                        object.outputBytes = options.longs === $String ? $util.Long.prototype.toString.call(message.outputBytes) : options.longs === $Number ? new $util.LongBits(message.outputBytes.low >>> 0, message.outputBytes.high >>> 0).toNumber(true) : message.outputBytes;
                if (message.keptOutputBytes != null && $Object.hasOwnProperty.call(message, "keptOutputBytes"))
                    if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
                        object.keptOutputBytes = typeof message.keptOutputBytes === "number" ? $BigInt(message.keptOutputBytes) : $util.Long.fromBits(message.keptOutputBytes.low >>> 0, message.keptOutputBytes.high >>> 0, true).toBigInt();
                    else if (typeof message.keptOutputBytes === "number")
                        object.keptOutputBytes = options.longs === $String ? $String(message.keptOutputBytes) : message.keptOutputBytes;
                    else
                        object.keptOutputBytes = options.longs === $String ? $util.Long.prototype.toString.call(message.keptOutputBytes) : options.longs === $Number ? new $util.LongBits(message.keptOutputBytes.low >>> 0, message.keptOutputBytes.high >>> 0).toNumber(true) : message.keptOutputBytes;
                if (message.scratchBytes != null && $Object.hasOwnProperty.call(message, "scratchBytes"))
                    if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
                        object.scratchBytes = typeof message.scratchBytes === "number" ? $BigInt(message.scratchBytes) : $util.Long.fromBits(message.scratchBytes.low >>> 0, message.scratchBytes.high >>> 0, true).toBigInt();
                    else if (typeof message.scratchBytes === "number")
                        object.scratchBytes = options.longs === $String ? $String(message.scratchBytes) : message.scratchBytes;
                    else
                        object.scratchBytes = options.longs === $String ? $util.Long.prototype.toString.call(message.scratchBytes) : options.longs === $Number ? new $util.LongBits(message.scratchBytes.low >>> 0, message.scratchBytes.high >>> 0).toNumber(true) : message.scratchBytes;
                if (message.scratchFiles != null && $Object.hasOwnProperty.call(message, "scratchFiles"))
                    object.scratchFiles = message.scratchFiles;
                if (message.processes != null && $Object.hasOwnProperty.call(message, "processes"))
                    object.processes = message.processes;
                if (message.submissionBytes != null && $Object.hasOwnProperty.call(message, "submissionBytes"))
                    if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
                        object.submissionBytes = typeof message.submissionBytes === "number" ? $BigInt(message.submissionBytes) : $util.Long.fromBits(message.submissionBytes.low >>> 0, message.submissionBytes.high >>> 0, true).toBigInt();
                    else if (typeof message.submissionBytes === "number")
                        object.submissionBytes = options.longs === $String ? $String(message.submissionBytes) : message.submissionBytes;
                    else
                        object.submissionBytes = options.longs === $String ? $util.Long.prototype.toString.call(message.submissionBytes) : options.longs === $Number ? new $util.LongBits(message.submissionBytes.low >>> 0, message.submissionBytes.high >>> 0).toNumber(true) : message.submissionBytes;
                return object;
            };

            Limits.prototype.toJSON = function() {
                return Limits.toObject(this, $protobuf.util.toJSONOptions);
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
            Lease.prototype.seed = $util.Long ? $util.Long.fromBits(0,0,true) : 0;

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
                            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
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

            Lease.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.Lease)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.Lease: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.Lease();
                if (object.attempt != null) {
                    if (!$util.isObject(object.attempt))
                        throw $TypeError(".longrun.v1alpha1.Lease.attempt: object expected");
                    message.attempt = $root.longrun.v1alpha1.Attempt.fromObject(object.attempt, _depth + 1);
                }
                if (object.task != null)
                    if (typeof object.task !== "string" || object.task.length)
                        message.task = $String(object.task);
                if (object.program != null)
                    if (object.program.length)
                        if (typeof object.program === "string")
                            $util.base64.decode(object.program, message.program = $util.newBuffer($util.base64.length(object.program)), 0);
                        else if (object.program.length >= 0)
                            message.program = object.program;
                if (object.markerNonce != null)
                    if (typeof object.markerNonce !== "string" || object.markerNonce.length)
                        message.markerNonce = $String(object.markerNonce);
                if (object.limits != null) {
                    if (!$util.isObject(object.limits))
                        throw $TypeError(".longrun.v1alpha1.Lease.limits: object expected");
                    message.limits = $root.longrun.v1alpha1.Limits.fromObject(object.limits, _depth + 1);
                }
                if (object.seed != null)
                    if (typeof object.seed === "object" ? object.seed.low || object.seed.high : $Number(object.seed) !== 0)
                        if ($util.Long)
                            message.seed = $util.Long.fromValue(object.seed, true);
                        else if (typeof object.seed === "string")
                            message.seed = $parseInt(object.seed, 10);
                        else if (typeof object.seed === "number")
                            message.seed = object.seed;
                        else if (typeof object.seed === "object")
                            message.seed = new $util.LongBits(object.seed.low >>> 0, object.seed.high >>> 0).toNumber(true);
                return message;
            };

            Lease.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (options.defaults) {
                    object.attempt = null;
                    object.task = "";
                    if (options.bytes === $String)
                        object.program = "";
                    else {
                        object.program = [];
                        if (options.bytes !== $Array)
                            object.program = $util.newBuffer(object.program);
                    }
                    object.markerNonce = "";
                    object.limits = null;
                    if ($util.Long) {
                        let long = new $util.Long(0, 0, true);
                        object.seed = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
                    } else
                        object.seed = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
                }
                if (message.attempt != null && $Object.hasOwnProperty.call(message, "attempt"))
                    object.attempt = $root.longrun.v1alpha1.Attempt.toObject(message.attempt, options, _depth + 1);
                if (message.task != null && $Object.hasOwnProperty.call(message, "task"))
                    object.task = message.task;
                if (message.program != null && $Object.hasOwnProperty.call(message, "program"))
                    object.program = options.bytes === $String ? $util.base64.encode(message.program, 0, message.program.length) : options.bytes === $Array ? $Array.prototype.slice.call(message.program) : message.program;
                if (message.markerNonce != null && $Object.hasOwnProperty.call(message, "markerNonce"))
                    object.markerNonce = message.markerNonce;
                if (message.limits != null && $Object.hasOwnProperty.call(message, "limits"))
                    object.limits = $root.longrun.v1alpha1.Limits.toObject(message.limits, options, _depth + 1);
                if (message.seed != null && $Object.hasOwnProperty.call(message, "seed"))
                    if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
                        object.seed = typeof message.seed === "number" ? $BigInt(message.seed) : $util.Long.fromBits(message.seed.low >>> 0, message.seed.high >>> 0, true).toBigInt();
                    else if (typeof message.seed === "number")
                        object.seed = options.longs === $String ? $String(message.seed) : message.seed;
                    else
                        object.seed = options.longs === $String ? $util.Long.prototype.toString.call(message.seed) : options.longs === $Number ? new $util.LongBits(message.seed.low >>> 0, message.seed.high >>> 0).toNumber(true) : message.seed;
                return object;
            };

            Lease.prototype.toJSON = function() {
                return Lease.toObject(this, $protobuf.util.toJSONOptions);
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
            Progress.prototype.memoryBytes = $util.Long ? $util.Long.fromBits(0,0,true) : 0;
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
                            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
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

            Progress.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.Progress)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.Progress: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.Progress();
                if (object.attempt != null) {
                    if (!$util.isObject(object.attempt))
                        throw $TypeError(".longrun.v1alpha1.Progress.attempt: object expected");
                    message.attempt = $root.longrun.v1alpha1.Attempt.fromObject(object.attempt, _depth + 1);
                }
                if (object.elapsedSeconds != null)
                    if (!$Object.is($Number(object.elapsedSeconds), 0))
                        message.elapsedSeconds = $Number(object.elapsedSeconds);
                if (object.cpuSeconds != null)
                    if (!$Object.is($Number(object.cpuSeconds), 0))
                        message.cpuSeconds = $Number(object.cpuSeconds);
                if (object.memoryBytes != null)
                    if (typeof object.memoryBytes === "object" ? object.memoryBytes.low || object.memoryBytes.high : $Number(object.memoryBytes) !== 0)
                        if ($util.Long)
                            message.memoryBytes = $util.Long.fromValue(object.memoryBytes, true);
                        else if (typeof object.memoryBytes === "string")
                            message.memoryBytes = $parseInt(object.memoryBytes, 10);
                        else if (typeof object.memoryBytes === "number")
                            message.memoryBytes = object.memoryBytes;
                        else if (typeof object.memoryBytes === "object")
                            message.memoryBytes = new $util.LongBits(object.memoryBytes.low >>> 0, object.memoryBytes.high >>> 0).toNumber(true);
                if (object.markers) {
                    if (!$Array.isArray(object.markers))
                        throw $TypeError(".longrun.v1alpha1.Progress.markers: array expected");
                    message.markers = $Array(object.markers.length);
                    for (let i = 0; i < object.markers.length; ++i)
                        message.markers[i] = $String(object.markers[i]);
                }
                return message;
            };

            Progress.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (options.arrays || options.defaults)
                    object.markers = [];
                if (options.defaults) {
                    object.attempt = null;
                    object.elapsedSeconds = 0;
                    object.cpuSeconds = 0;
                    if ($util.Long) {
                        let long = new $util.Long(0, 0, true);
                        object.memoryBytes = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
                    } else
                        object.memoryBytes = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
                }
                if (message.attempt != null && $Object.hasOwnProperty.call(message, "attempt"))
                    object.attempt = $root.longrun.v1alpha1.Attempt.toObject(message.attempt, options, _depth + 1);
                if (message.elapsedSeconds != null && $Object.hasOwnProperty.call(message, "elapsedSeconds"))
                    object.elapsedSeconds = options.json && !$isFinite(message.elapsedSeconds) ? $String(message.elapsedSeconds) : message.elapsedSeconds;
                if (message.cpuSeconds != null && $Object.hasOwnProperty.call(message, "cpuSeconds"))
                    object.cpuSeconds = options.json && !$isFinite(message.cpuSeconds) ? $String(message.cpuSeconds) : message.cpuSeconds;
                if (message.memoryBytes != null && $Object.hasOwnProperty.call(message, "memoryBytes"))
                    if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
                        object.memoryBytes = typeof message.memoryBytes === "number" ? $BigInt(message.memoryBytes) : $util.Long.fromBits(message.memoryBytes.low >>> 0, message.memoryBytes.high >>> 0, true).toBigInt();
                    else if (typeof message.memoryBytes === "number")
                        object.memoryBytes = options.longs === $String ? $String(message.memoryBytes) : message.memoryBytes;
                    else
                        object.memoryBytes = options.longs === $String ? $util.Long.prototype.toString.call(message.memoryBytes) : options.longs === $Number ? new $util.LongBits(message.memoryBytes.low >>> 0, message.memoryBytes.high >>> 0).toNumber(true) : message.memoryBytes;
                if (message.markers && message.markers.length) {
                    object.markers = $Array(message.markers.length);
                    for (let j = 0; j < message.markers.length; ++j)
                        object.markers[j] = message.markers[j];
                }
                return object;
            };

            Progress.prototype.toJSON = function() {
                return Progress.toObject(this, $protobuf.util.toJSONOptions);
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

            Heartbeat.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.Heartbeat)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.Heartbeat: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.Heartbeat();
                if (object.running) {
                    if (!$Array.isArray(object.running))
                        throw $TypeError(".longrun.v1alpha1.Heartbeat.running: array expected");
                    message.running = $Array(object.running.length);
                    for (let i = 0; i < object.running.length; ++i) {
                        if (!$util.isObject(object.running[i]))
                            throw $TypeError(".longrun.v1alpha1.Heartbeat.running: object expected");
                        message.running[i] = $root.longrun.v1alpha1.Progress.fromObject(object.running[i], _depth + 1);
                    }
                }
                if (object.busySeconds != null)
                    if (!$Object.is($Number(object.busySeconds), 0))
                        message.busySeconds = $Number(object.busySeconds);
                if (object.aliveSeconds != null)
                    if (!$Object.is($Number(object.aliveSeconds), 0))
                        message.aliveSeconds = $Number(object.aliveSeconds);
                return message;
            };

            Heartbeat.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (options.arrays || options.defaults)
                    object.running = [];
                if (options.defaults) {
                    object.busySeconds = 0;
                    object.aliveSeconds = 0;
                }
                if (message.running && message.running.length) {
                    object.running = $Array(message.running.length);
                    for (let j = 0; j < message.running.length; ++j)
                        object.running[j] = $root.longrun.v1alpha1.Progress.toObject(message.running[j], options, _depth + 1);
                }
                if (message.busySeconds != null && $Object.hasOwnProperty.call(message, "busySeconds"))
                    object.busySeconds = options.json && !$isFinite(message.busySeconds) ? $String(message.busySeconds) : message.busySeconds;
                if (message.aliveSeconds != null && $Object.hasOwnProperty.call(message, "aliveSeconds"))
                    object.aliveSeconds = options.json && !$isFinite(message.aliveSeconds) ? $String(message.aliveSeconds) : message.aliveSeconds;
                return object;
            };

            Heartbeat.prototype.toJSON = function() {
                return Heartbeat.toObject(this, $protobuf.util.toJSONOptions);
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

            Marker.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.Marker)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.Marker: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.Marker();
                if (object.name != null)
                    if (typeof object.name !== "string" || object.name.length)
                        message.name = $String(object.name);
                if (object.value != null)
                    if (typeof object.value !== "string" || object.value.length)
                        message.value = $String(object.value);
                if (object.atSeconds != null)
                    if (!$Object.is($Number(object.atSeconds), 0))
                        message.atSeconds = $Number(object.atSeconds);
                return message;
            };

            Marker.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (options.defaults) {
                    object.name = "";
                    object.value = "";
                    object.atSeconds = 0;
                }
                if (message.name != null && $Object.hasOwnProperty.call(message, "name"))
                    object.name = message.name;
                if (message.value != null && $Object.hasOwnProperty.call(message, "value"))
                    object.value = message.value;
                if (message.atSeconds != null && $Object.hasOwnProperty.call(message, "atSeconds"))
                    object.atSeconds = options.json && !$isFinite(message.atSeconds) ? $String(message.atSeconds) : message.atSeconds;
                return object;
            };

            Marker.prototype.toJSON = function() {
                return Marker.toObject(this, $protobuf.util.toJSONOptions);
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
            ResultHeader.prototype.peakMemoryBytes = $util.Long ? $util.Long.fromBits(0,0,true) : 0;
            ResultHeader.prototype.markers = $util.emptyArray;
            ResultHeader.prototype.forgedMarkers = 0;
            ResultHeader.prototype.imitatedMarkers = 0;
            ResultHeader.prototype.terminalOutput = $util.newBuffer([]);
            ResultHeader.prototype.outputBytes = $util.Long ? $util.Long.fromBits(0,0,true) : 0;
            ResultHeader.prototype.submission = null;
            ResultHeader.prototype.submissionRefused = "";
            ResultHeader.prototype.detail = "";
            ResultHeader.prototype.isolationLevel = "";

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
                            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
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
                            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
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

            ResultHeader.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.ResultHeader)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.ResultHeader: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.ResultHeader();
                if (object.attempt != null) {
                    if (!$util.isObject(object.attempt))
                        throw $TypeError(".longrun.v1alpha1.ResultHeader.attempt: object expected");
                    message.attempt = $root.longrun.v1alpha1.Attempt.fromObject(object.attempt, _depth + 1);
                }
                if (object.outcome !== 0 && (typeof object.outcome !== "string" || $root.longrun.v1alpha1.Outcome[object.outcome] !== 0))
                    switch (object.outcome) {
                    case "OUTCOME_UNSPECIFIED":
                    case 0:
                        message.outcome = 0;
                        break;
                    case "COMPLETED":
                    case 1:
                        message.outcome = 1;
                        break;
                    case "FAILED":
                    case 2:
                        message.outcome = 2;
                        break;
                    case "TIMED_OUT":
                    case 3:
                        message.outcome = 3;
                        break;
                    case "OUT_OF_MEMORY":
                    case 4:
                        message.outcome = 4;
                        break;
                    case "OUTPUT_LIMIT":
                    case 5:
                        message.outcome = 5;
                        break;
                    case "LOST":
                    case 6:
                        message.outcome = 6;
                        break;
                    default:
                        if (typeof object.outcome === "number" && (object.outcome | 0) === object.outcome)
                            message.outcome = object.outcome;
                    }
                if (object.exitStatus != null)
                    if ($Number(object.exitStatus) !== 0)
                        message.exitStatus = object.exitStatus | 0;
                if (object.signal != null)
                    if ($Number(object.signal) !== 0)
                        message.signal = object.signal | 0;
                if (object.durationSeconds != null)
                    if (!$Object.is($Number(object.durationSeconds), 0))
                        message.durationSeconds = $Number(object.durationSeconds);
                if (object.cpuSeconds != null)
                    if (!$Object.is($Number(object.cpuSeconds), 0))
                        message.cpuSeconds = $Number(object.cpuSeconds);
                if (object.peakMemoryBytes != null)
                    if (typeof object.peakMemoryBytes === "object" ? object.peakMemoryBytes.low || object.peakMemoryBytes.high : $Number(object.peakMemoryBytes) !== 0)
                        if ($util.Long)
                            message.peakMemoryBytes = $util.Long.fromValue(object.peakMemoryBytes, true);
                        else if (typeof object.peakMemoryBytes === "string")
                            message.peakMemoryBytes = $parseInt(object.peakMemoryBytes, 10);
                        else if (typeof object.peakMemoryBytes === "number")
                            message.peakMemoryBytes = object.peakMemoryBytes;
                        else if (typeof object.peakMemoryBytes === "object")
                            message.peakMemoryBytes = new $util.LongBits(object.peakMemoryBytes.low >>> 0, object.peakMemoryBytes.high >>> 0).toNumber(true);
                if (object.markers) {
                    if (!$Array.isArray(object.markers))
                        throw $TypeError(".longrun.v1alpha1.ResultHeader.markers: array expected");
                    message.markers = $Array(object.markers.length);
                    for (let i = 0; i < object.markers.length; ++i) {
                        if (!$util.isObject(object.markers[i]))
                            throw $TypeError(".longrun.v1alpha1.ResultHeader.markers: object expected");
                        message.markers[i] = $root.longrun.v1alpha1.Marker.fromObject(object.markers[i], _depth + 1);
                    }
                }
                if (object.forgedMarkers != null)
                    if ($Number(object.forgedMarkers) !== 0)
                        message.forgedMarkers = object.forgedMarkers >>> 0;
                if (object.imitatedMarkers != null)
                    if ($Number(object.imitatedMarkers) !== 0)
                        message.imitatedMarkers = object.imitatedMarkers >>> 0;
                if (object.terminalOutput != null)
                    if (object.terminalOutput.length)
                        if (typeof object.terminalOutput === "string")
                            $util.base64.decode(object.terminalOutput, message.terminalOutput = $util.newBuffer($util.base64.length(object.terminalOutput)), 0);
                        else if (object.terminalOutput.length >= 0)
                            message.terminalOutput = object.terminalOutput;
                if (object.outputBytes != null)
                    if (typeof object.outputBytes === "object" ? object.outputBytes.low || object.outputBytes.high : $Number(object.outputBytes) !== 0)
                        if ($util.Long)
                            message.outputBytes = $util.Long.fromValue(object.outputBytes, true);
                        else if (typeof object.outputBytes === "string")
                            message.outputBytes = $parseInt(object.outputBytes, 10);
                        else if (typeof object.outputBytes === "number")
                            message.outputBytes = object.outputBytes;
                        else if (typeof object.outputBytes === "object")
                            message.outputBytes = new $util.LongBits(object.outputBytes.low >>> 0, object.outputBytes.high >>> 0).toNumber(true);
                if (object.submission != null) {
                    if (!$util.isObject(object.submission))
                        throw $TypeError(".longrun.v1alpha1.ResultHeader.submission: object expected");
                    message.submission = $root.longrun.v1alpha1.SubmissionInfo.fromObject(object.submission, _depth + 1);
                }
                if (object.submissionRefused != null)
                    if (typeof object.submissionRefused !== "string" || object.submissionRefused.length)
                        message.submissionRefused = $String(object.submissionRefused);
                if (object.detail != null)
                    if (typeof object.detail !== "string" || object.detail.length)
                        message.detail = $String(object.detail);
                if (object.isolationLevel != null)
                    if (typeof object.isolationLevel !== "string" || object.isolationLevel.length)
                        message.isolationLevel = $String(object.isolationLevel);
                return message;
            };

            ResultHeader.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (options.arrays || options.defaults)
                    object.markers = [];
                if (options.defaults) {
                    object.attempt = null;
                    object.outcome = options.enums === $String ? "OUTCOME_UNSPECIFIED" : 0;
                    object.exitStatus = 0;
                    object.signal = 0;
                    object.durationSeconds = 0;
                    object.cpuSeconds = 0;
                    if ($util.Long) {
                        let long = new $util.Long(0, 0, true);
                        object.peakMemoryBytes = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
                    } else
                        object.peakMemoryBytes = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
                    object.forgedMarkers = 0;
                    object.imitatedMarkers = 0;
                    if (options.bytes === $String)
                        object.terminalOutput = "";
                    else {
                        object.terminalOutput = [];
                        if (options.bytes !== $Array)
                            object.terminalOutput = $util.newBuffer(object.terminalOutput);
                    }
                    if ($util.Long) {
                        let long = new $util.Long(0, 0, true);
                        object.outputBytes = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
                    } else
                        object.outputBytes = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
                    object.submission = null;
                    object.submissionRefused = "";
                    object.detail = "";
                    object.isolationLevel = "";
                }
                if (message.attempt != null && $Object.hasOwnProperty.call(message, "attempt"))
                    object.attempt = $root.longrun.v1alpha1.Attempt.toObject(message.attempt, options, _depth + 1);
                if (message.outcome != null && $Object.hasOwnProperty.call(message, "outcome"))
                    object.outcome = options.enums === $String ? $root.longrun.v1alpha1.Outcome[message.outcome] === $undefined ? message.outcome : $root.longrun.v1alpha1.Outcome[message.outcome] : message.outcome;
                if (message.exitStatus != null && $Object.hasOwnProperty.call(message, "exitStatus"))
                    object.exitStatus = message.exitStatus;
                if (message.signal != null && $Object.hasOwnProperty.call(message, "signal"))
                    object.signal = message.signal;
                if (message.durationSeconds != null && $Object.hasOwnProperty.call(message, "durationSeconds"))
                    object.durationSeconds = options.json && !$isFinite(message.durationSeconds) ? $String(message.durationSeconds) : message.durationSeconds;
                if (message.cpuSeconds != null && $Object.hasOwnProperty.call(message, "cpuSeconds"))
                    object.cpuSeconds = options.json && !$isFinite(message.cpuSeconds) ? $String(message.cpuSeconds) : message.cpuSeconds;
                if (message.peakMemoryBytes != null && $Object.hasOwnProperty.call(message, "peakMemoryBytes"))
                    if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
                        object.peakMemoryBytes = typeof message.peakMemoryBytes === "number" ? $BigInt(message.peakMemoryBytes) : $util.Long.fromBits(message.peakMemoryBytes.low >>> 0, message.peakMemoryBytes.high >>> 0, true).toBigInt();
                    else if (typeof message.peakMemoryBytes === "number")
                        object.peakMemoryBytes = options.longs === $String ? $String(message.peakMemoryBytes) : message.peakMemoryBytes;
                    else
                        object.peakMemoryBytes = options.longs === $String ? $util.Long.prototype.toString.call(message.peakMemoryBytes) : options.longs === $Number ? new $util.LongBits(message.peakMemoryBytes.low >>> 0, message.peakMemoryBytes.high >>> 0).toNumber(true) : message.peakMemoryBytes;
                if (message.markers && message.markers.length) {
                    object.markers = $Array(message.markers.length);
                    for (let j = 0; j < message.markers.length; ++j)
                        object.markers[j] = $root.longrun.v1alpha1.Marker.toObject(message.markers[j], options, _depth + 1);
                }
                if (message.forgedMarkers != null && $Object.hasOwnProperty.call(message, "forgedMarkers"))
                    object.forgedMarkers = message.forgedMarkers;
                if (message.imitatedMarkers != null && $Object.hasOwnProperty.call(message, "imitatedMarkers"))
                    object.imitatedMarkers = message.imitatedMarkers;
                if (message.terminalOutput != null && $Object.hasOwnProperty.call(message, "terminalOutput"))
                    object.terminalOutput = options.bytes === $String ? $util.base64.encode(message.terminalOutput, 0, message.terminalOutput.length) : options.bytes === $Array ? $Array.prototype.slice.call(message.terminalOutput) : message.terminalOutput;
                if (message.outputBytes != null && $Object.hasOwnProperty.call(message, "outputBytes"))
                    if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
                        object.outputBytes = typeof message.outputBytes === "number" ? $BigInt(message.outputBytes) : $util.Long.fromBits(message.outputBytes.low >>> 0, message.outputBytes.high >>> 0, true).toBigInt();
                    else if (typeof message.outputBytes === "number")
                        object.outputBytes = options.longs === $String ? $String(message.outputBytes) : message.outputBytes;
                    else
                        object.outputBytes = options.longs === $String ? $util.Long.prototype.toString.call(message.outputBytes) : options.longs === $Number ? new $util.LongBits(message.outputBytes.low >>> 0, message.outputBytes.high >>> 0).toNumber(true) : message.outputBytes;
                if (message.submission != null && $Object.hasOwnProperty.call(message, "submission"))
                    object.submission = $root.longrun.v1alpha1.SubmissionInfo.toObject(message.submission, options, _depth + 1);
                if (message.submissionRefused != null && $Object.hasOwnProperty.call(message, "submissionRefused"))
                    object.submissionRefused = message.submissionRefused;
                if (message.detail != null && $Object.hasOwnProperty.call(message, "detail"))
                    object.detail = message.detail;
                if (message.isolationLevel != null && $Object.hasOwnProperty.call(message, "isolationLevel"))
                    object.isolationLevel = message.isolationLevel;
                return object;
            };

            ResultHeader.prototype.toJSON = function() {
                return ResultHeader.toObject(this, $protobuf.util.toJSONOptions);
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

            SubmissionInfo.prototype.bytes = $util.Long ? $util.Long.fromBits(0,0,true) : 0;
            SubmissionInfo.prototype.sha256 = "";
            SubmissionInfo.prototype.compressedBytes = $util.Long ? $util.Long.fromBits(0,0,true) : 0;
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
                            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
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
                            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
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

            SubmissionInfo.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.SubmissionInfo)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.SubmissionInfo: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.SubmissionInfo();
                if (object.bytes != null)
                    if (typeof object.bytes === "object" ? object.bytes.low || object.bytes.high : $Number(object.bytes) !== 0)
                        if ($util.Long)
                            message.bytes = $util.Long.fromValue(object.bytes, true);
                        else if (typeof object.bytes === "string")
                            message.bytes = $parseInt(object.bytes, 10);
                        else if (typeof object.bytes === "number")
                            message.bytes = object.bytes;
                        else if (typeof object.bytes === "object")
                            message.bytes = new $util.LongBits(object.bytes.low >>> 0, object.bytes.high >>> 0).toNumber(true);
                if (object.sha256 != null)
                    if (typeof object.sha256 !== "string" || object.sha256.length)
                        message.sha256 = $String(object.sha256);
                if (object.compressedBytes != null)
                    if (typeof object.compressedBytes === "object" ? object.compressedBytes.low || object.compressedBytes.high : $Number(object.compressedBytes) !== 0)
                        if ($util.Long)
                            message.compressedBytes = $util.Long.fromValue(object.compressedBytes, true);
                        else if (typeof object.compressedBytes === "string")
                            message.compressedBytes = $parseInt(object.compressedBytes, 10);
                        else if (typeof object.compressedBytes === "number")
                            message.compressedBytes = object.compressedBytes;
                        else if (typeof object.compressedBytes === "object")
                            message.compressedBytes = new $util.LongBits(object.compressedBytes.low >>> 0, object.compressedBytes.high >>> 0).toNumber(true);
                if (object.chunks != null)
                    if ($Number(object.chunks) !== 0)
                        message.chunks = object.chunks >>> 0;
                return message;
            };

            SubmissionInfo.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (options.defaults) {
                    if ($util.Long) {
                        let long = new $util.Long(0, 0, true);
                        object.bytes = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
                    } else
                        object.bytes = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
                    object.sha256 = "";
                    if ($util.Long) {
                        let long = new $util.Long(0, 0, true);
                        object.compressedBytes = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
                    } else
                        object.compressedBytes = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
                    object.chunks = 0;
                }
                if (message.bytes != null && $Object.hasOwnProperty.call(message, "bytes"))
                    if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
                        object.bytes = typeof message.bytes === "number" ? $BigInt(message.bytes) : $util.Long.fromBits(message.bytes.low >>> 0, message.bytes.high >>> 0, true).toBigInt();
                    else if (typeof message.bytes === "number")
                        object.bytes = options.longs === $String ? $String(message.bytes) : message.bytes;
                    else
                        object.bytes = options.longs === $String ? $util.Long.prototype.toString.call(message.bytes) : options.longs === $Number ? new $util.LongBits(message.bytes.low >>> 0, message.bytes.high >>> 0).toNumber(true) : message.bytes;
                if (message.sha256 != null && $Object.hasOwnProperty.call(message, "sha256"))
                    object.sha256 = message.sha256;
                if (message.compressedBytes != null && $Object.hasOwnProperty.call(message, "compressedBytes"))
                    if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
                        object.compressedBytes = typeof message.compressedBytes === "number" ? $BigInt(message.compressedBytes) : $util.Long.fromBits(message.compressedBytes.low >>> 0, message.compressedBytes.high >>> 0, true).toBigInt();
                    else if (typeof message.compressedBytes === "number")
                        object.compressedBytes = options.longs === $String ? $String(message.compressedBytes) : message.compressedBytes;
                    else
                        object.compressedBytes = options.longs === $String ? $util.Long.prototype.toString.call(message.compressedBytes) : options.longs === $Number ? new $util.LongBits(message.compressedBytes.low >>> 0, message.compressedBytes.high >>> 0).toNumber(true) : message.compressedBytes;
                if (message.chunks != null && $Object.hasOwnProperty.call(message, "chunks"))
                    object.chunks = message.chunks;
                return object;
            };

            SubmissionInfo.prototype.toJSON = function() {
                return SubmissionInfo.toObject(this, $protobuf.util.toJSONOptions);
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

            SubmissionChunk.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.SubmissionChunk)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.SubmissionChunk: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.SubmissionChunk();
                if (object.attempt != null) {
                    if (!$util.isObject(object.attempt))
                        throw $TypeError(".longrun.v1alpha1.SubmissionChunk.attempt: object expected");
                    message.attempt = $root.longrun.v1alpha1.Attempt.fromObject(object.attempt, _depth + 1);
                }
                if (object.index != null)
                    if ($Number(object.index) !== 0)
                        message.index = object.index >>> 0;
                if (object.data != null)
                    if (object.data.length)
                        if (typeof object.data === "string")
                            $util.base64.decode(object.data, message.data = $util.newBuffer($util.base64.length(object.data)), 0);
                        else if (object.data.length >= 0)
                            message.data = object.data;
                return message;
            };

            SubmissionChunk.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (options.defaults) {
                    object.attempt = null;
                    object.index = 0;
                    if (options.bytes === $String)
                        object.data = "";
                    else {
                        object.data = [];
                        if (options.bytes !== $Array)
                            object.data = $util.newBuffer(object.data);
                    }
                }
                if (message.attempt != null && $Object.hasOwnProperty.call(message, "attempt"))
                    object.attempt = $root.longrun.v1alpha1.Attempt.toObject(message.attempt, options, _depth + 1);
                if (message.index != null && $Object.hasOwnProperty.call(message, "index"))
                    object.index = message.index;
                if (message.data != null && $Object.hasOwnProperty.call(message, "data"))
                    object.data = options.bytes === $String ? $util.base64.encode(message.data, 0, message.data.length) : options.bytes === $Array ? $Array.prototype.slice.call(message.data) : message.data;
                return object;
            };

            SubmissionChunk.prototype.toJSON = function() {
                return SubmissionChunk.toObject(this, $protobuf.util.toJSONOptions);
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

            Ack.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.Ack)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.Ack: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.Ack();
                if (object.attempt != null) {
                    if (!$util.isObject(object.attempt))
                        throw $TypeError(".longrun.v1alpha1.Ack.attempt: object expected");
                    message.attempt = $root.longrun.v1alpha1.Attempt.fromObject(object.attempt, _depth + 1);
                }
                if (object.accepted != null)
                    if (object.accepted)
                        message.accepted = $Boolean(object.accepted);
                if (object.reason != null)
                    if (typeof object.reason !== "string" || object.reason.length)
                        message.reason = $String(object.reason);
                return message;
            };

            Ack.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (options.defaults) {
                    object.attempt = null;
                    object.accepted = false;
                    object.reason = "";
                }
                if (message.attempt != null && $Object.hasOwnProperty.call(message, "attempt"))
                    object.attempt = $root.longrun.v1alpha1.Attempt.toObject(message.attempt, options, _depth + 1);
                if (message.accepted != null && $Object.hasOwnProperty.call(message, "accepted"))
                    object.accepted = message.accepted;
                if (message.reason != null && $Object.hasOwnProperty.call(message, "reason"))
                    object.reason = message.reason;
                return object;
            };

            Ack.prototype.toJSON = function() {
                return Ack.toObject(this, $protobuf.util.toJSONOptions);
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

            Revoke.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.Revoke)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.Revoke: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.Revoke();
                if (object.attempt != null) {
                    if (!$util.isObject(object.attempt))
                        throw $TypeError(".longrun.v1alpha1.Revoke.attempt: object expected");
                    message.attempt = $root.longrun.v1alpha1.Attempt.fromObject(object.attempt, _depth + 1);
                }
                if (object.reason != null)
                    if (typeof object.reason !== "string" || object.reason.length)
                        message.reason = $String(object.reason);
                return message;
            };

            Revoke.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (options.defaults) {
                    object.attempt = null;
                    object.reason = "";
                }
                if (message.attempt != null && $Object.hasOwnProperty.call(message, "attempt"))
                    object.attempt = $root.longrun.v1alpha1.Attempt.toObject(message.attempt, options, _depth + 1);
                if (message.reason != null && $Object.hasOwnProperty.call(message, "reason"))
                    object.reason = message.reason;
                return object;
            };

            Revoke.prototype.toJSON = function() {
                return Revoke.toObject(this, $protobuf.util.toJSONOptions);
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

            Drain.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.Drain)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.Drain: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.Drain();
                if (object.reason != null)
                    if (typeof object.reason !== "string" || object.reason.length)
                        message.reason = $String(object.reason);
                return message;
            };

            Drain.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (options.defaults)
                    object.reason = "";
                if (message.reason != null && $Object.hasOwnProperty.call(message, "reason"))
                    object.reason = message.reason;
                return object;
            };

            Drain.prototype.toJSON = function() {
                return Drain.toObject(this, $protobuf.util.toJSONOptions);
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

            Drained.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.Drained)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.Drained: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                return new $root.longrun.v1alpha1.Drained();
            };

            Drained.toObject = function () {
                return {};
            };

            Drained.prototype.toJSON = function() {
                return Drained.toObject(this, $protobuf.util.toJSONOptions);
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
                message = _target || new $root.longrun.v1alpha1.WatchRequest();
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

            WatchRequest.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.WatchRequest)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.WatchRequest: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                return new $root.longrun.v1alpha1.WatchRequest();
            };

            WatchRequest.toObject = function () {
                return {};
            };

            WatchRequest.prototype.toJSON = function() {
                return WatchRequest.toObject(this, $protobuf.util.toJSONOptions);
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

            Status.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.Status)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.Status: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.Status();
                if (object.phase !== 0 && (typeof object.phase !== "string" || $root.longrun.v1alpha1.Phase[object.phase] !== 0))
                    switch (object.phase) {
                    case "STARTING":
                    case 0:
                        message.phase = 0;
                        break;
                    case "GENERATING":
                    case 1:
                        message.phase = 1;
                        break;
                    case "EXECUTING":
                    case 2:
                        message.phase = 2;
                        break;
                    case "EVALUATING":
                    case 3:
                        message.phase = 3;
                        break;
                    case "TRAINING":
                    case 4:
                        message.phase = 4;
                        break;
                    case "CHECKPOINTING":
                    case 5:
                        message.phase = 5;
                        break;
                    case "FINAL_EVALUATION":
                    case 6:
                        message.phase = 6;
                        break;
                    case "SUCCEEDED":
                    case 7:
                        message.phase = 7;
                        break;
                    case "FAILED_RUN":
                    case 8:
                        message.phase = 8;
                        break;
                    case "STOPPED":
                    case 9:
                        message.phase = 9;
                        break;
                    default:
                        if (typeof object.phase === "number" && (object.phase | 0) === object.phase)
                            message.phase = object.phase;
                    }
                if (object.iteration != null)
                    if ($Number(object.iteration) !== 0)
                        message.iteration = object.iteration >>> 0;
                if (object.iterations != null)
                    if ($Number(object.iterations) !== 0)
                        message.iterations = object.iterations >>> 0;
                if (object.phaseDone != null)
                    if ($Number(object.phaseDone) !== 0)
                        message.phaseDone = object.phaseDone >>> 0;
                if (object.phaseTotal != null)
                    if ($Number(object.phaseTotal) !== 0)
                        message.phaseTotal = object.phaseTotal >>> 0;
                if (object.phaseSeconds != null)
                    if (!$Object.is($Number(object.phaseSeconds), 0))
                        message.phaseSeconds = $Number(object.phaseSeconds);
                if (object.executions != null) {
                    if (!$util.isObject(object.executions))
                        throw $TypeError(".longrun.v1alpha1.Status.executions: object expected");
                    message.executions = $root.longrun.v1alpha1.Executions.fromObject(object.executions, _depth + 1);
                }
                if (object.actors) {
                    if (!$Array.isArray(object.actors))
                        throw $TypeError(".longrun.v1alpha1.Status.actors: array expected");
                    message.actors = $Array(object.actors.length);
                    for (let i = 0; i < object.actors.length; ++i) {
                        if (!$util.isObject(object.actors[i]))
                            throw $TypeError(".longrun.v1alpha1.Status.actors: object expected");
                        message.actors[i] = $root.longrun.v1alpha1.ActorStatus.fromObject(object.actors[i], _depth + 1);
                    }
                }
                if (object.iterationJson != null)
                    if (typeof object.iterationJson !== "string" || object.iterationJson.length)
                        message.iterationJson = $String(object.iterationJson);
                if (object.message != null)
                    if (typeof object.message !== "string" || object.message.length)
                        message.message = $String(object.message);
                if (object.lineage != null)
                    if (typeof object.lineage !== "string" || object.lineage.length)
                        message.lineage = $String(object.lineage);
                if (object.reportPath != null)
                    if (typeof object.reportPath !== "string" || object.reportPath.length)
                        message.reportPath = $String(object.reportPath);
                if (object.checkpoint != null) {
                    if (!$util.isObject(object.checkpoint))
                        throw $TypeError(".longrun.v1alpha1.Status.checkpoint: object expected");
                    message.checkpoint = $root.longrun.v1alpha1.Checkpoint.fromObject(object.checkpoint, _depth + 1);
                }
                return message;
            };

            Status.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (options.arrays || options.defaults)
                    object.actors = [];
                if (options.defaults) {
                    object.phase = options.enums === $String ? "STARTING" : 0;
                    object.iteration = 0;
                    object.iterations = 0;
                    object.phaseDone = 0;
                    object.phaseTotal = 0;
                    object.phaseSeconds = 0;
                    object.executions = null;
                    object.iterationJson = "";
                    object.message = "";
                    object.lineage = "";
                    object.reportPath = "";
                    object.checkpoint = null;
                }
                if (message.phase != null && $Object.hasOwnProperty.call(message, "phase"))
                    object.phase = options.enums === $String ? $root.longrun.v1alpha1.Phase[message.phase] === $undefined ? message.phase : $root.longrun.v1alpha1.Phase[message.phase] : message.phase;
                if (message.iteration != null && $Object.hasOwnProperty.call(message, "iteration"))
                    object.iteration = message.iteration;
                if (message.iterations != null && $Object.hasOwnProperty.call(message, "iterations"))
                    object.iterations = message.iterations;
                if (message.phaseDone != null && $Object.hasOwnProperty.call(message, "phaseDone"))
                    object.phaseDone = message.phaseDone;
                if (message.phaseTotal != null && $Object.hasOwnProperty.call(message, "phaseTotal"))
                    object.phaseTotal = message.phaseTotal;
                if (message.phaseSeconds != null && $Object.hasOwnProperty.call(message, "phaseSeconds"))
                    object.phaseSeconds = options.json && !$isFinite(message.phaseSeconds) ? $String(message.phaseSeconds) : message.phaseSeconds;
                if (message.executions != null && $Object.hasOwnProperty.call(message, "executions"))
                    object.executions = $root.longrun.v1alpha1.Executions.toObject(message.executions, options, _depth + 1);
                if (message.actors && message.actors.length) {
                    object.actors = $Array(message.actors.length);
                    for (let j = 0; j < message.actors.length; ++j)
                        object.actors[j] = $root.longrun.v1alpha1.ActorStatus.toObject(message.actors[j], options, _depth + 1);
                }
                if (message.iterationJson != null && $Object.hasOwnProperty.call(message, "iterationJson"))
                    object.iterationJson = message.iterationJson;
                if (message.message != null && $Object.hasOwnProperty.call(message, "message"))
                    object.message = message.message;
                if (message.lineage != null && $Object.hasOwnProperty.call(message, "lineage"))
                    object.lineage = message.lineage;
                if (message.reportPath != null && $Object.hasOwnProperty.call(message, "reportPath"))
                    object.reportPath = message.reportPath;
                if (message.checkpoint != null && $Object.hasOwnProperty.call(message, "checkpoint"))
                    object.checkpoint = $root.longrun.v1alpha1.Checkpoint.toObject(message.checkpoint, options, _depth + 1);
                return object;
            };

            Status.prototype.toJSON = function() {
                return Status.toObject(this, $protobuf.util.toJSONOptions);
            };

            return Status;
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
            Executions.prototype.completed = $util.Long ? $util.Long.fromBits(0,0,true) : 0;
            Executions.prototype.lost = $util.Long ? $util.Long.fromBits(0,0,true) : 0;
            Executions.prototype.retried = $util.Long ? $util.Long.fromBits(0,0,true) : 0;

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
                            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
                                message.completed = value;
                            else
                                delete message.completed;
                            continue;
                        }
                    case 4: {
                            if (wireType !== 0)
                                break;
                            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
                                message.lost = value;
                            else
                                delete message.lost;
                            continue;
                        }
                    case 5: {
                            if (wireType !== 0)
                                break;
                            if (typeof (value = reader.uint64()) === "object" ? value.low || value.high : value !== 0)
                                message.retried = value;
                            else
                                delete message.retried;
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

            Executions.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.Executions)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.Executions: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.Executions();
                if (object.queued != null)
                    if ($Number(object.queued) !== 0)
                        message.queued = object.queued >>> 0;
                if (object.running != null)
                    if ($Number(object.running) !== 0)
                        message.running = object.running >>> 0;
                if (object.completed != null)
                    if (typeof object.completed === "object" ? object.completed.low || object.completed.high : $Number(object.completed) !== 0)
                        if ($util.Long)
                            message.completed = $util.Long.fromValue(object.completed, true);
                        else if (typeof object.completed === "string")
                            message.completed = $parseInt(object.completed, 10);
                        else if (typeof object.completed === "number")
                            message.completed = object.completed;
                        else if (typeof object.completed === "object")
                            message.completed = new $util.LongBits(object.completed.low >>> 0, object.completed.high >>> 0).toNumber(true);
                if (object.lost != null)
                    if (typeof object.lost === "object" ? object.lost.low || object.lost.high : $Number(object.lost) !== 0)
                        if ($util.Long)
                            message.lost = $util.Long.fromValue(object.lost, true);
                        else if (typeof object.lost === "string")
                            message.lost = $parseInt(object.lost, 10);
                        else if (typeof object.lost === "number")
                            message.lost = object.lost;
                        else if (typeof object.lost === "object")
                            message.lost = new $util.LongBits(object.lost.low >>> 0, object.lost.high >>> 0).toNumber(true);
                if (object.retried != null)
                    if (typeof object.retried === "object" ? object.retried.low || object.retried.high : $Number(object.retried) !== 0)
                        if ($util.Long)
                            message.retried = $util.Long.fromValue(object.retried, true);
                        else if (typeof object.retried === "string")
                            message.retried = $parseInt(object.retried, 10);
                        else if (typeof object.retried === "number")
                            message.retried = object.retried;
                        else if (typeof object.retried === "object")
                            message.retried = new $util.LongBits(object.retried.low >>> 0, object.retried.high >>> 0).toNumber(true);
                return message;
            };

            Executions.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (options.defaults) {
                    object.queued = 0;
                    object.running = 0;
                    if ($util.Long) {
                        let long = new $util.Long(0, 0, true);
                        object.completed = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
                    } else
                        object.completed = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
                    if ($util.Long) {
                        let long = new $util.Long(0, 0, true);
                        object.lost = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
                    } else
                        object.lost = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
                    if ($util.Long) {
                        let long = new $util.Long(0, 0, true);
                        object.retried = options.longs === $String ? long.toString() : options.longs === $Number ? long.toNumber() : typeof $BigInt !== "undefined" && options.longs === $BigInt ? long.toBigInt() : long;
                    } else
                        object.retried = options.longs === $String ? "0" : typeof $BigInt !== "undefined" && options.longs === $BigInt ? $BigInt("0") : 0;
                }
                if (message.queued != null && $Object.hasOwnProperty.call(message, "queued"))
                    object.queued = message.queued;
                if (message.running != null && $Object.hasOwnProperty.call(message, "running"))
                    object.running = message.running;
                if (message.completed != null && $Object.hasOwnProperty.call(message, "completed"))
                    if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
                        object.completed = typeof message.completed === "number" ? $BigInt(message.completed) : $util.Long.fromBits(message.completed.low >>> 0, message.completed.high >>> 0, true).toBigInt();
                    else if (typeof message.completed === "number")
                        object.completed = options.longs === $String ? $String(message.completed) : message.completed;
                    else
                        object.completed = options.longs === $String ? $util.Long.prototype.toString.call(message.completed) : options.longs === $Number ? new $util.LongBits(message.completed.low >>> 0, message.completed.high >>> 0).toNumber(true) : message.completed;
                if (message.lost != null && $Object.hasOwnProperty.call(message, "lost"))
                    if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
                        object.lost = typeof message.lost === "number" ? $BigInt(message.lost) : $util.Long.fromBits(message.lost.low >>> 0, message.lost.high >>> 0, true).toBigInt();
                    else if (typeof message.lost === "number")
                        object.lost = options.longs === $String ? $String(message.lost) : message.lost;
                    else
                        object.lost = options.longs === $String ? $util.Long.prototype.toString.call(message.lost) : options.longs === $Number ? new $util.LongBits(message.lost.low >>> 0, message.lost.high >>> 0).toNumber(true) : message.lost;
                if (message.retried != null && $Object.hasOwnProperty.call(message, "retried"))
                    if (typeof $BigInt !== "undefined" && options.longs === $BigInt)
                        object.retried = typeof message.retried === "number" ? $BigInt(message.retried) : $util.Long.fromBits(message.retried.low >>> 0, message.retried.high >>> 0, true).toBigInt();
                    else if (typeof message.retried === "number")
                        object.retried = options.longs === $String ? $String(message.retried) : message.retried;
                    else
                        object.retried = options.longs === $String ? $util.Long.prototype.toString.call(message.retried) : options.longs === $Number ? new $util.LongBits(message.retried.low >>> 0, message.retried.high >>> 0).toNumber(true) : message.retried;
                return object;
            };

            Executions.prototype.toJSON = function() {
                return Executions.toObject(this, $protobuf.util.toJSONOptions);
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

            ActorStatus.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.ActorStatus)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.ActorStatus: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.ActorStatus();
                if (object.name != null)
                    if (typeof object.name !== "string" || object.name.length)
                        message.name = $String(object.name);
                if (object.isolationLevel != null)
                    if (typeof object.isolationLevel !== "string" || object.isolationLevel.length)
                        message.isolationLevel = $String(object.isolationLevel);
                if (object.slots != null)
                    if ($Number(object.slots) !== 0)
                        message.slots = object.slots >>> 0;
                if (object.running != null)
                    if ($Number(object.running) !== 0)
                        message.running = object.running >>> 0;
                if (object.connected != null)
                    if (object.connected)
                        message.connected = $Boolean(object.connected);
                if (object.busyShare != null)
                    if (!$Object.is($Number(object.busyShare), 0))
                        message.busyShare = $Number(object.busyShare);
                return message;
            };

            ActorStatus.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (options.defaults) {
                    object.name = "";
                    object.isolationLevel = "";
                    object.slots = 0;
                    object.running = 0;
                    object.connected = false;
                    object.busyShare = 0;
                }
                if (message.name != null && $Object.hasOwnProperty.call(message, "name"))
                    object.name = message.name;
                if (message.isolationLevel != null && $Object.hasOwnProperty.call(message, "isolationLevel"))
                    object.isolationLevel = message.isolationLevel;
                if (message.slots != null && $Object.hasOwnProperty.call(message, "slots"))
                    object.slots = message.slots;
                if (message.running != null && $Object.hasOwnProperty.call(message, "running"))
                    object.running = message.running;
                if (message.connected != null && $Object.hasOwnProperty.call(message, "connected"))
                    object.connected = message.connected;
                if (message.busyShare != null && $Object.hasOwnProperty.call(message, "busyShare"))
                    object.busyShare = options.json && !$isFinite(message.busyShare) ? $String(message.busyShare) : message.busyShare;
                return object;
            };

            ActorStatus.prototype.toJSON = function() {
                return ActorStatus.toObject(this, $protobuf.util.toJSONOptions);
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

            Checkpoint.fromObject = function (object, _depth) {
                if (object instanceof $root.longrun.v1alpha1.Checkpoint)
                    return object;
                if (!$util.isObject(object))
                    throw $TypeError(".longrun.v1alpha1.Checkpoint: object expected");
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let message = new $root.longrun.v1alpha1.Checkpoint();
                if (object.iteration != null)
                    if ($Number(object.iteration) !== 0)
                        message.iteration = object.iteration >>> 0;
                if (object.digest != null)
                    if (typeof object.digest !== "string" || object.digest.length)
                        message.digest = $String(object.digest);
                if (object.path != null)
                    if (typeof object.path !== "string" || object.path.length)
                        message.path = $String(object.path);
                return message;
            };

            Checkpoint.toObject = function (message, options, _depth) {
                if (!options)
                    options = {};
                if (_depth === $undefined)
                    _depth = 0;
                if (_depth > $util.recursionLimit)
                    throw $Error("max depth exceeded");
                let object = {};
                if (options.defaults) {
                    object.iteration = 0;
                    object.digest = "";
                    object.path = "";
                }
                if (message.iteration != null && $Object.hasOwnProperty.call(message, "iteration"))
                    object.iteration = message.iteration;
                if (message.digest != null && $Object.hasOwnProperty.call(message, "digest"))
                    object.digest = message.digest;
                if (message.path != null && $Object.hasOwnProperty.call(message, "path"))
                    object.path = message.path;
                return object;
            };

            Checkpoint.prototype.toJSON = function() {
                return Checkpoint.toObject(this, $protobuf.util.toJSONOptions);
            };

            return Checkpoint;
        })();

        return v1alpha1;
    })();

    return longrun;
})();

export {
  $root as default
};
