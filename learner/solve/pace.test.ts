import assert from "node:assert/strict";
import { test } from "node:test";
import { SEARCH_DEFAULTS } from "../../proto/solve.ts";
import { uniforms } from "../engine/index.ts";
import { Pace } from "./pace.ts";
import { choose } from "./search.ts";
import { Tree } from "./tree.ts";

/** Events of a simulated clock, in seconds, in the order of their times. */
class Clock {
  now = 0;
  readonly #events: { at: number; act: () => void }[] = [];

  after(seconds: number, act: () => void): void {
    this.#events.push({ at: this.now + seconds, act });
  }

  /** Advances to the next event. @returns false if there is none before `end` */
  step(end: number): boolean {
    const next = this.#events.reduce((first, event) => (event.at < first.at ? event : first), {
      at: Number.POSITIVE_INFINITY,
      act: () => {},
    });
    if (next.at > end) return false;
    this.#events.splice(this.#events.indexOf(next), 1);
    this.now = next.at;
    next.act();
    return true;
  }
}

/**
 * Searches for `seconds` of a simulated clock. Solutions take `write` seconds to write and `run` to run, times a factor whose logarithm is
 * normal with a deviation of 0.6: some take five times as long as others. @returns the share of slot-seconds that ran a program
 */
function simulated({
  slots = 64,
  writers = 128,
  write,
  run,
  seconds = 1800,
}: Record<"write" | "run", number> & { slots?: number; writers?: number; seconds?: number }) {
  const clock = new Clock();
  const next = uniforms(5, "simulation");
  const normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  const uneven = (mean: number) => mean * Math.exp(0.6 * normal() - 0.18);
  const pace = new Pace(slots, writers);
  const tree = new Tree("Higher");
  const rules = { search: "greedy", ...SEARCH_DEFAULTS } as const;
  const queue: string[] = [];
  let [writing, running, asked, busy, mostOpen] = [0, 0, 0, 0, 0];
  const begin = () => {
    const wanted = pace.wanted({ writing, executing: queue.length + running, left: Number.POSITIVE_INFINITY });
    for (let i = 0; i < wanted; i++) {
      const id = `s${asked++}`;
      const { operator, parent } = choose(tree, rules, next);
      tree.put({ id, parent, operator, depth: 0, state: "pending", hasProgram: true });
      writing++;
      const took = uneven(write);
      clock.after(took, () => {
        writing--;
        pace.wrote(took);
        queue.push(id);
        dispatch();
      });
    }
    mostOpen = Math.max(mostOpen, writing + queue.length + running);
  };
  const dispatch = () => {
    while (running < slots && queue.length > 0) {
      const id = queue.shift()!;
      running++;
      const took = uneven(run);
      busy += Math.min(took, seconds - clock.now);
      clock.after(took, () => {
        running--;
        pace.ran(took);
        const isValid = next() < 0.7;
        tree.put({ ...tree.get(id)!, state: isValid ? "valid" : "failed", score: isValid ? next() : undefined });
        dispatch();
      });
    }
    begin();
  };
  dispatch();
  while (clock.step(seconds));
  return { busyShare: busy / (slots * seconds), mostOpen, asked };
}

test("64 slots run programs for more than 95 % of the time, in simulation", () => {
  for (const [write, run] of [
    [10, 60],
    [30, 60],
    [40, 40],
    [90, 60],
  ] as const) {
    const { busyShare, mostOpen } = simulated({ write, run });
    assert.ok(busyShare > 0.95, `writing ${write} s, running ${run} s: ${busyShare}`);
    assert.ok(mostOpen <= 64 + 128 + 16, `${mostOpen} solutions are open`);
  }
});

test("writers that are too few are all busy", () => {
  const { asked } = simulated({ writers: 8, write: 30, run: 10 });
  const most = (1800 / 30) * 8;
  assert.ok(asked > 0.95 * most && asked < 1.1 * most + 8, `${asked} of ${most}`);
});

test("with one slot nothing is asked ahead", () => {
  const pace = new Pace(1, 64);
  pace.wrote(100);
  pace.ran(1);
  assert.equal(pace.wanted({ writing: 0, executing: 0, left: 9 }), 1);
  assert.equal(pace.wanted({ writing: 1, executing: 0, left: 9 }), 0);
  assert.equal(pace.wanted({ writing: 0, executing: 1, left: 9 }), 0);
});

test("no more is begun than the budget leaves", () => {
  const pace = new Pace(8, 64);
  assert.equal(pace.wanted({ writing: 0, executing: 0, left: 3 }), 3);
  assert.equal(pace.wanted({ writing: 0, executing: 0, left: 0 }), 0);
  assert.equal(pace.wanted({ writing: 0, executing: 0, left: Number.POSITIVE_INFINITY }), 16);
});
