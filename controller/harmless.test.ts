import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { harmless } from "./harmless.ts";

const CASES: [name: string, text: string, shown: string][] = [
  ["text stays", "a\tb\n🌋 naïve\n", "a\tb\n🌋 naïve\n"],
  ["lines of Windows", "a\r\nb", "a\nb"],
  ["writing to the clipboard (OSC 52)", "\u001b]52;c;cm0gLXJm\u0007", "␛]52;c;cm0gLXJm␇"],
  ["a title", "\u001b]0;root\u001b\\", "␛]0;root␛\\"],
  ["clearing the screen", "\u001b[2J\u001b[H", "␛[2J␛[H"],
  ["C1 controls", "\u009b2J\u009d52;c;eA\u009c", "\ufffd2J\ufffd52;c;eA\ufffd"],
  ["backspaces", "rm -rf\b\b\b\b\b\bls    ", "rm -rf␈␈␈␈␈␈ls    "],
  ["a carriage return over text", "failed\rpassed\n", "failed␍passed\n"],
  ["reordering", "\u202etxt.exe\u2066a\u2069", "\ufffdtxt.exe\ufffda\ufffd"],
  ["delete, vertical tab, form feed", "\u007f\u000b\u000c", "\ufffd␋␌"],
];
for (const [name, text, shown] of CASES) test(name, () => assert.equal(harmless(text), shown));

test("harmless leaves no control character", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      const shown = harmless(text);
      assert.doesNotMatch(shown.replace(/[\t\n]/g, ""), /[\p{Cc}\u202a-\u202e\u2066-\u2069]/u);
      assert.equal(harmless(shown), shown);
    }),
  );
});
