import assert from "node:assert/strict";
import { test } from "node:test";
import { shownName, twinOf } from "./name-twins.ts";

const cases: [wanted: string, name: string, quoted: string, difference: string][] = [
  ["TOTAL VALUE", "TOTAL VALUE ", '"TOTAL VALUE "', "a blank at the end"],
  ["price", "  price", '"  price"', "a blank in front"],
  ["café", "cafe\u0301", '"cafe\\u0301"', "accents in another Unicode form"],
  ["cafe\u0301", "café", '"café"', "accents in another Unicode form"],
  ["a b", "a\u00a0b", '"a\\u00a0b"', "other blanks inside"],
  ["a b", "a  b", '"a  b"', "other blanks inside"],
  ["price", "pri\u200bce", '"pri\\u200bce"', "an invisible character"],
  ["price", "\ufeffprice", '"\\ufeffprice"', "a blank in front, an invisible character"],
  ["Price", "price", '"price"', "other capitals"],
  ["Émile", "e\u0301mile ", '"e\\u0301mile "', "a blank at the end, accents in another Unicode form, other capitals"],
];
for (const [wanted, name, quoted, difference] of cases)
  test(`a name that looks like another one is found: ${quoted}`, () => {
    assert.deepEqual(twinOf(wanted, ["id", name]), { name, quoted, difference });
  });

test("other names, and the name itself, are no twins", () => {
  assert.equal(twinOf("price", ["price", "prices", "pryce", ""]), undefined);
});

test("a name that could be misread is shown in quotes", () => {
  assert.deepEqual(["a b", "größe", "a ", "a,b", "\u200b"].map(shownName), [
    "a b",
    "größe",
    '"a "',
    '"a,b"',
    '"\\u200b"',
  ]);
});
