/** A controller and its runs may have different versions, so their messages must keep their meaning on the wire. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import protobuf from "protobufjs";
import { messages } from "./service.ts";

const FOLDER = join(import.meta.dirname, "released");
const load = (file: string) =>
  protobuf.parse(readFileSync(file, "utf8")).root.lookup("longrun.v1alpha1") as protobuf.Namespace;
const now = load(join(import.meta.dirname, "longrun.proto"));

/** Returns messages between different versions: of controller and learner, and of actors that outlive a learner. */
function messagesOf(namespace: protobuf.NamespaceBase): protobuf.Type[] {
  return namespace.nestedArray.flatMap((it) => (it instanceof protobuf.Type ? [it, ...messagesOf(it)] : []));
}

/** Returns a message with a different value in every field. */
function sampleOf(message: protobuf.Type): Record<string, unknown> {
  const one = (field: protobuf.Field) => {
    const { resolvedType, type, id } = field.resolve();
    if (resolvedType instanceof protobuf.Type) return sampleOf(resolvedType);
    if (resolvedType) return 3;
    return type === "string" ? `text ${id}` : type === "bool" ? true : id + 1;
  };
  return Object.fromEntries(
    message.fieldsArray.map((field) => [field.name, field.repeated ? [one(field)] : one(field)]),
  );
}

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

for (const file of readdirSync(FOLDER).filter((name) => name.endsWith(".proto")))
  describe(file, () => {
    const released = load(join(FOLDER, file));
    for (const message of messagesOf(released))
      test(`${message.name}: every field has its number and type, or is reserved`, () => {
        const today = now.lookupType(message.name);
        for (const { name, id, type, repeated } of message.fieldsArray) {
          const field = today.fieldsById[id];
          if (!field) assert.ok(today.isReservedId(id), `${name} = ${id} is gone and not reserved`);
          else assert.deepEqual([field.name, field.type, field.repeated], [name, type, repeated]);
        }
      });
    test("a status with every field is understood", () => {
      const Status = released.lookupType("Status");
      const said = sampleOf(Status);
      const heard = messages.Status.decode(Status.encode(Status.fromObject(said)).finish());
      for (const [field, value] of Object.entries(said))
        assert.partialDeepStrictEqual(plain(heard[field as keyof typeof heard]), value, field);
    });
    test("every phase has its number", () => {
      const phases = now.lookupEnum("Phase").values;
      for (const [name, number] of Object.entries(released.lookupEnum("Phase").values))
        assert.equal(phases[name], number);
    });
    test("a service has the calls that it had", () => {
      for (const service of released.nestedArray.filter((it) => it instanceof protobuf.Service))
        for (const { name, requestType, responseType, responseStream } of service.methodsArray) {
          const method = now.lookupService(service.name).methods[name];
          assert.deepEqual(
            [method?.requestType, method?.responseType, method?.responseStream],
            [requestType, responseType, responseStream],
          );
        }
    });
  });
