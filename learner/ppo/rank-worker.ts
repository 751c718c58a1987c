/** A Rank in a worker thread; data-parallel.ts calls it. */
import { parentPort, workerData } from "node:worker_threads";
import { serveCalls } from "./calls.ts";
import type { EngineOptions } from "./engine.ts";
import { Rank } from "./rank.ts";

serveCalls(parentPort!, () => new Rank(workerData as EngineOptions));
