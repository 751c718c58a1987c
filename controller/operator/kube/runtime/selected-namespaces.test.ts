import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSelector } from "./selected-namespaces.ts";

test("A selector has kubectl's form; other texts are refused with the option's name", () => {
  for (const text of ["a", "!a", "a=b", "a==b", "a!=b,c", "team in (a, b)", "x.io/a notin (b)", "a=, b = c"])
    assert.equal(parseSelector(text, "--namespace-selector"), text);
  for (const text of ["", "=a", "a=b=c", "a in b", "a,,b", "a in (b", "team: a", "{a: b}"])
    assert.throws(() => parseSelector(text, "--namespace-selector"), {
      message: /^--namespace-selector is ".*": write it as kubectl takes it, such as longrun=yes/,
    });
});
