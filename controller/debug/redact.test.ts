import assert from "node:assert/strict";
import { test } from "node:test";
import { redactObject, redactText } from "./redact.ts";

const texts: [text: string, redacted: string][] = [
  ["Authorization: Bearer abc.def-1", "Authorization: Bearer [redacted]"],
  ['{"password":"hunter2","user":"me"}', '{"password":"[redacted]","user":"me"}'],
  ["API_KEY=abc123 and more", "API_KEY=[redacted] and more"],
  ["https://me:pass@host/x", "https://[redacted]@host/x"],
  ["    webhook:\n      url: https://hooks.test/T0P/SECRET", "    webhook:\n      url: [redacted]"],
  ['{"webhook":{"url":"https://hooks.test/T0P"}}', '{"webhook":{"url":"[redacted]"}}'],
  ["token: eyJhbGciOi.eyJzdWIi.sig", "token: [redacted]"],
  ["secretName: run-ca", "secretName: run-ca"],
  ["maxPromptTokens: 256", "maxPromptTokens: 256"],
  ['longrun_tokens_generated_total{run="x"} 40', 'longrun_tokens_generated_total{run="x"} 40'],
];

for (const [text, redacted] of texts)
  test(`redactText hides the secret in ${text}`, () => {
    assert.equal(redactText(text), redacted);
  });

test("redactObject hides the values of environment variables, not their sources", () => {
  const from = { name: "B", valueFrom: { secretKeyRef: { name: "s", key: "k" } } };
  const pod = {
    metadata: {
      name: "p",
      managedFields: [{}],
      annotations: { "kubectl.kubernetes.io/last-applied-configuration": "A=1" },
    },
    spec: { containers: [{ env: [{ name: "A", value: "1" }, from] }] },
  };
  assert.deepEqual(redactObject(pod), {
    metadata: { name: "p", annotations: {} },
    spec: { containers: [{ env: [{ name: "A", value: "[redacted]" }, from] }] },
  });
});
