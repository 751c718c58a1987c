import assert from "node:assert/strict";
import { test } from "node:test";
import * as grpc from "@grpc/grpc-js";
import { bind } from "./channel.ts";

/** A server on a machine without IPv6. */
function withoutIpv6(tried: string[]): Pick<grpc.Server, "bindAsync"> {
  return {
    bindAsync(address, _, done) {
      tried.push(address);
      if (address.startsWith("[")) done(new Error("listen EAFNOSUPPORT"), 0);
      else done(null, 7000);
    },
  };
}

test("A server without a host listens with IPv4 alone where there is no IPv6; with a host nowhere else", async () => {
  const tried: string[] = [];
  const credentials = grpc.ServerCredentials.createInsecure();
  assert.equal(await bind(withoutIpv6(tried), { port: 7000 }, credentials), 7000);
  assert.deepEqual(tried, ["[::]:7000", "0.0.0.0:7000"]);
  await assert.rejects(bind(withoutIpv6(tried), { host: "::1", port: 7000 }, credentials), /EAFNOSUPPORT/);
});
