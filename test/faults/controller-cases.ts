/**
 * Faults for a controller: a proxy that refuses, loses, delays and cuts, and kills before and after each of its writes. A run's life must
 * end like an undisturbed one, and nothing undesired may be created.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { uniforms } from "../../learner/engine/model/random.ts";
import { CONTROL_PLANE } from "../cluster/binaries.ts";
import { controlPlaneUnavailable } from "../cluster/control-plane.ts";
import { World } from "../controller/world.ts";
import type { ApiProxy } from "./api-proxy.ts";
import type { ApiRequest } from "./api-request.ts";
import { Controller, isReconcileWrite, killedHere, live, type Meanwhile, type Remains } from "./controller-life.ts";

interface Case {
  /** Sets faults of each of the controller's proxies. `chance(p)` returns true with probability p, by a seed. */
  faults?: (proxy: ApiProxy, chance: (probability: number) => boolean, controller: Controller) => void;
  meanwhile?: Meanwhile;
}

const isOwnWrite = isReconcileWrite;
const isEither = (request: ApiRequest) => request.verb !== "watch" && request.resource !== "";
const ALWAYS = Number.POSITIVE_INFINITY;

const CASES = {
  "409: every fifth write or so": {
    faults: (proxy, chance) =>
      proxy.inject((request) => isOwnWrite(request) && chance(0.2), { kind: "answer", code: 409 }, ALWAYS),
  },
  "429 with Retry-After": {
    faults: (proxy, chance) =>
      proxy.inject((it) => isEither(it) && chance(0.1), { kind: "answer", code: 429, retryAfterSeconds: 1 }, ALWAYS),
  },
  "500, on reads and writes": {
    faults: (proxy, chance) =>
      proxy.inject((it) => isEither(it) && chance(0.15), { kind: "answer", code: 500 }, ALWAYS),
  },
  "the write is done and its answer lost": {
    faults: (proxy, chance) => {
      proxy.inject((it) => isOwnWrite(it) && chance(0.15), { kind: "lost", how: "reset" }, ALWAYS);
      proxy.inject((it) => isOwnWrite(it) && chance(0.15), { kind: "lost", how: "504" }, ALWAYS);
    },
  },
  "the write of an actor is done and never answered": {
    faults: (proxy) =>
      proxy.inject(({ isWrite, verb, resource }) => isWrite && verb === "create" && resource === "batch/jobs", {
        kind: "lost",
        how: "hang",
      }),
  },
  "watches break, expire and talk nonsense": {
    faults: (proxy, chance) => {
      proxy.onEvent = () => {
        if (chance(0.1)) return { kind: "reset" };
        if (chance(0.05)) return { kind: "expire" };
        if (chance(0.05)) return { kind: "garbage" };
      };
    },
  },
  "events come late": {
    faults: (proxy, chance) => {
      proxy.onEvent = () => (chance(0.2) ? { kind: "delay", seconds: 0.5 } : undefined);
    },
  },
  "own creations are seen late": {
    faults: (proxy) => {
      proxy.onEvent = ({ type }) => (type === "ADDED" ? { kind: "delay", seconds: 3 } : undefined);
    },
  },
  "events are lost until the next list": {
    faults: (proxy, chance) => {
      let dropping = false;
      // After each fault the reflectors wait longer before they list, as they should, so four are enough.
      let left = 4;
      proxy.onEvent = () => {
        if (!dropping && left > 0 && chance(0.05)) {
          dropping = true;
          left--;
          setTimeout(() => {
            dropping = false;
            proxy.expireWatches();
          }, 1000);
        }
        return dropping ? { kind: "drop" } : undefined;
      };
    },
  },
  "restarts that read the past": {
    meanwhile: async (_, controller) => {
      await controller.restart((proxy) => proxy.freezeReads());
      await sleep(2000);
      controller.proxy.thawReads();
    },
  },
  "killed before and after every write": {
    faults: (proxy, _, controller) => {
      // The first write is stopped before it reaches the API server. Its second try succeeds, and then the controller is killed.
      proxy.beforeWrite = (request) => {
        if (isOwnWrite(request) && controller.starts % 2 === 1) killedHere(controller);
      };
      proxy.afterWrite = (request) => {
        if (isOwnWrite(request)) killedHere(controller);
      };
    },
  },
} satisfies Record<string, Case>;
type CaseName = keyof typeof CASES;

/** Cases of `npm test`; `npm run test:faults` runs the others. */
export const IN_SHORT: CaseName[] = ["watches break, expire and talk nonsense", "killed before and after every write"];
export const THE_OTHERS = (Object.keys(CASES) as CaseName[]).filter((name) => !IN_SHORT.includes(name));

export function testUnderFaults(cases: CaseName[]): void {
  const skip = controlPlaneUnavailable(CONTROL_PLANE) ?? false;
  describe("controller under faults", { skip, concurrency: 4 }, () => {
    let world: World;
    let clean: Remains;
    const controllers: Controller[] = [];
    const start = async (configure?: (proxy: ApiProxy, controller: Controller) => void) => {
      const controller = await Controller.start(world, configure);
      controllers.push(controller);
      return controller;
    };

    before(async () => {
      world = await World.start();
      const controller = await start();
      clean = await live(world, controller);
      await controller.stop();
      assert.equal(clean.mostActors, 3);
      assert.deepEqual(clean.deleted, []);
    });
    after(async () => {
      for (const controller of controllers) await controller.stop();
      await world?.stop();
    });

    for (const name of cases) {
      test(name, async (context) => {
        const { faults, meanwhile }: Case = CASES[name];
        const next = uniforms(0, name);
        const controller = await start((proxy, it) => faults?.(proxy, (probability) => next() < probability, it));
        const remains = await live(world, controller, meanwhile);
        assert.deepEqual(remains, clean);
        context.diagnostic(`${controller.writes.length} writes, ${controller.starts} starts`);
      });
    }
  });
}
