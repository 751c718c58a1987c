import assert from "node:assert/strict";
import { test } from "node:test";
import { type Axis, linePlot } from "./plots.ts";

const CASES: [what: string, heights: number[], y: Partial<Axis>, domain: [number, number] | undefined][] = [
  ["a flat line stands in the middle", [4, 4], {}, [3, 5]],
  ["a flat line of zeros", [0, 0], {}, [-0.25, 0.25]],
  ["a share is never below zero", [0, 0], { zero: true }, [0, 0.25]],
  ["a line that moves has the domain of its points", [1, 2], {}, undefined],
  ["what the axis says counts", [0, 0], { domain: [0, 1] }, [0, 1]],
];
for (const [what, heights, y, domain] of CASES)
  test(`a line plot is drawn for ${what}`, () => {
    const points = heights.map((height, index) => ({ x: index + 1, y: height, series: "a" }));
    const series = [{ label: "a", color: "red" }];
    const plot = linePlot(points, series, { title: "x" }, { title: "y", ...y }, "third");
    const [layer] = (plot as unknown as { layer: { encoding: { y: { scale: { domain?: number[] } } } }[] }).layer;
    assert.deepEqual(layer!.encoding.y.scale.domain, domain);
  });
