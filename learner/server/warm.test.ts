import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import fc from "fast-check";
import { newSample } from "../store/fixtures.ts";
import { closeActors, startLearner, TestActor } from "./fixtures.ts";
import { importsOf, WarmModules } from "./warm.ts";

describe("what a program imports", () => {
  const cases: [name: string, program: string, modules: string[]][] = [
    ["nothing", "print('import pandas')\nx = 'from a import b'\n", []],
    ["modules", "import numpy as np, pandas\n  import sklearn.svm # os\n", ["numpy", "pandas", "sklearn.svm"]],
    ["names of a module", "from sklearn.ensemble import RandomForestRegressor, X\n", ["sklearn.ensemble"]],
    [
      "names of a package, which may be modules",
      "from sklearn import svm as s, tree\n",
      ["sklearn", "sklearn.svm", "sklearn.tree"],
    ],
    [
      "in parentheses",
      "from scipy import (  # some\n  stats,\n  sparse as sp,\n)\n",
      ["scipy", "scipy.stats", "scipy.sparse"],
    ],
    ["where it is used", "def f():\n\timport torch; g()\nif x: import y\n", ["torch"]],
    ["each once", "import a\nimport a\nfrom a import *\n", ["a"]],
    [
      "relative, private, paths",
      "from . import x\nfrom .y import z\nimport _a, /tmp/b, c-d\nfrom e import _f\n",
      ["e"],
    ],
    ["too long, too deep", `import ${"a".repeat(70)}\nimport a.b.c.d.e\n`, []],
  ];
  for (const [name, program, modules] of cases) test(name, () => assert.deepEqual(importsOf(program), modules));

  test("of hostile text few names, all of a shape, in no time", () => {
    const piece = fc.constantFrom(
      "import ",
      "from ",
      "(",
      ")",
      ",",
      "\n",
      "a",
      ".",
      " ",
      "\t",
      "#",
      ";",
      "*",
      "\0",
      "é",
      "-",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        for (const found of importsOf(pieces.join(""))) assert.match(found, /^[A-Za-z]\w*(\.[A-Za-z]\w*){0,3}$/);
      }),
    );
    const many = Array.from({ length: 1000 }, (_, index) => `import m${index}`).join("\n");
    assert.equal(importsOf(many).length, 32);
    const start = performance.now();
    for (const text of ["from a import (", "import a,", "\t", "from a import (x,\n"]) importsOf(text.repeat(1_000_000));
    assert.ok(performance.now() - start < 2000);
  });
});

describe("what sandboxes should have imported", () => {
  const program = (...modules: string[]) => modules.map((name) => `import ${name}\n`).join("");
  function learner(options = {}) {
    const clock = { seconds: 0 };
    const warm = new WarmModules({ window: 100, ...options }, () => clock.seconds * 1000);
    /** So many programs of a hundred import each. @returns whether that changed anything */
    const run = (counts: Record<string, number>) => {
      let changed = false;
      for (let index = 0; index < 100; index++)
        changed = warm.learn(program(...Object.keys(counts).filter((name) => index < counts[name]!))) || changed;
      clock.seconds += 1000;
      return changed;
    };
    return { warm, run, clock };
  }

  test("is not known before there were enough programs", () => {
    const { warm } = learner();
    for (let index = 0; index < 99; index++) assert.equal(warm.learn(program("a")), false);
    assert.equal(warm.modules, undefined);
    assert.equal(warm.learn(program("a")), true);
    assert.deepEqual(warm.modules, ["a", "torch"]);
  });

  test("programs that import nothing leave nothing but torch, which is there only in the paper's environment", () => {
    const { warm, run } = learner();
    assert.equal(run({}), true);
    assert.deepEqual(warm.modules, ["torch"]);
    assert.equal(run({ rare: 1 }), false);
  });

  test("a module comes with a good share and goes when nearly nobody uses it; in between it does not flap", () => {
    const { warm, run } = learner();
    assert.equal(run({ pandas: 90, polars: 5, rare: 1 }), true); // of the default, perhaps: it stays if it is used
    assert.deepEqual(warm.modules, ["pandas", "polars", "torch"]);
    assert.deepEqual(warm.shares, { pandas: 0.9, polars: 0.05 });
    assert.equal(run({ pandas: 80, polars: 2, xgboost: 9 }), false);
    assert.equal(run({ pandas: 80, polars: 1, xgboost: 9 }), true);
    assert.deepEqual(warm.modules, ["pandas", "torch"]);
    assert.equal(run({ pandas: 80, polars: 9, xgboost: 10 }), true);
    assert.deepEqual(warm.modules, ["pandas", "xgboost", "torch"]);
    for (const share of [9, 2, 11, 3]) assert.equal(run({ pandas: 80, xgboost: share, polars: share - 2 }), false);
  });

  test("rarely, and no more than so many", () => {
    const { warm, run, clock } = learner({ mostModules: 2 });
    run({ a: 50, b: 60, c: 40 });
    assert.deepEqual(warm.modules, ["b", "a", "torch"]);
    clock.seconds = 500;
    assert.equal(run({ c: 90 }), false);
    clock.seconds = 600;
    assert.equal(run({ c: 90 }), true);
    assert.deepEqual(warm.modules, ["c", "torch"]);
  });
});

describe("actors are told", () => {
  after(() => closeActors());
  const MODULES = ["sklearn", "sklearn.svm", "torch"];
  const samples = ["a", "b", "c", "d"].map((id) =>
    newSample(id, { instrumented: "from sklearn import svm\nprint('@@NONCE@@:loaded data')\n" }),
  );

  test("when it changes and when they connect, also by a learner that goes on with the run", async () => {
    const warm = { window: 4, secondsBetween: 0 };
    const first = await startLearner({ warm });
    const early = new TestActor(first.address, "early");
    assert.equal((await early.hello({ slots: 4 })).warm, null);
    early.ready(4);
    first.store.addSamples(samples);
    assert.deepEqual((await early.next("warm")).modules, MODULES);
    assert.deepEqual((await new TestActor(first.address, "late").hello()).warm?.modules, MODULES);
    await first.stop();
    const second = await startLearner({ path: first.path, warm });
    assert.deepEqual((await new TestActor(second.address, "again").hello()).warm?.modules, MODULES);
    await second.stop();
  });
});
