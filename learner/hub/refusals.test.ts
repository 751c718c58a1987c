import assert from "node:assert/strict";
import { test } from "node:test";
import { failureOf, retryAfterSeconds } from "./refusals.ts";

const NOW = Date.parse("2026-11-25T12:00:00Z");
const waits: [headers: Record<string, string>, seconds: number | undefined][] = [
  [{}, undefined],
  [{ "retry-after": "7" }, 7],
  [{ "retry-after": "Wed, 25 Nov 2026 12:00:30 GMT" }, 30],
  [{ "retry-after": "Wed, 25 Nov 2026 11:00:00 GMT" }, 0],
  [{ "retry-after": "soon" }, undefined],
  [{ ratelimit: '"resolvers";r=0;t=55' }, 55],
];
for (const [headers, seconds] of waits)
  test(`${JSON.stringify(headers)} asks to wait for ${seconds} s`, () =>
    assert.equal(retryAfterSeconds(new Headers(headers), NOW), seconds));

const refused = new TypeError("fetch failed", {
  cause: Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }),
});
const self = Object.assign(new Error("self-signed certificate in certificate chain"), {
  code: "SELF_SIGNED_CERT_IN_CHAIN",
});
const several = new TypeError("fetch failed", { cause: new AggregateError([new Error("connect to ::1")], "") });
const failures: [what: string, cause: Error, env: NodeJS.ProcessEnv, again: boolean, message: RegExp][] = [
  [
    "no proxy",
    refused,
    {},
    true,
    /^cannot reach hub.test: connect ECONNREFUSED; check the network, or set HTTPS_PROXY/,
  ],
  ["several addresses", several, {}, true, /^cannot reach hub.test: connect to ::1;/],
  [
    "a proxy",
    refused,
    { HTTPS_PROXY: "http://a:b@proxy:3128" },
    true,
    /^cannot reach hub.test through the proxy http:\/\/proxy:3128 \(HTTPS_PROXY\): connect/,
  ],
  ["a proxy of http alone", refused, { HTTP_PROXY: "http://proxy" }, true, /^cannot reach hub.test: connect/],
  [
    "a host that goes past the proxy",
    refused,
    { https_proxy: "http://proxy", NO_PROXY: "x, .test" },
    true,
    /^cannot reach hub.test: connect/,
  ],
  [
    "an authority of one's own",
    new TypeError("fetch failed", { cause: self }),
    {},
    false,
    /^the certificate of hub.test is not trusted \(self-signed.*name its file in NODE_EXTRA_CA_CERTS, and in a cluster its ConfigMap in spec\.caBundle$/,
  ],
];
for (const [what, cause, env, again, message] of failures)
  test(`a missing answer is explained: ${what}`, () => {
    const error = failureOf(cause, "https://hub.test/api", env);
    assert.match(error.message, message);
    assert.deepEqual([error.code, error.again !== undefined], ["network", again]);
  });
