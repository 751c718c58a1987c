import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { generatorArguments } from "./generators.ts";

const generatorsTls = mkdtempSync(join(tmpdir(), "generators-tls-"));
writeFileSync(join(generatorsTls, "tls.crt"), "");
after(() => rmSync(generatorsTls, { recursive: true }));

test("the learner is told of generators and their certificate, or of none", () => {
  const generators = "https://gpu-1:8443, https://gpu-2:8443,";
  const expected = ["--generators", generators, "--generators-tls", generatorsTls];
  assert.deepEqual(generatorArguments({ generators, generatorsTls }), expected);
  assert.deepEqual(generatorArguments({}), []);
});

for (const [what, given, message] of [
  ["an empty list, as of an unset variable", { generators: "", generatorsTls }, /^--generators is "": give https:/],
  ["a list without a URL", { generators: " ,", generatorsTls }, /^--generators is " ,": give https:/],
  [
    "a URL without TLS",
    { generators: "https://a:1,http://b:1", generatorsTls },
    /is "https:\/\/a:1,http:\/\/b:1": give/,
  ],
  ["no certificate", { generators: "https://a:1" }, /give --generators-tls DIR/],
  ["a folder without a certificate", { generators: "https://a:1", generatorsTls: "/nowhere" }, /there is no tls\.crt/],
  ["a certificate alone", { generatorsTls }, /of which generators\? give --generators URL/],
] as const)
  test(`refused before anything is prepared: ${what}`, () => {
    assert.throws(() => generatorArguments(given), { code: "input", message });
  });
