/** A Rank in a worker thread; data-parallel.ts calls it. */
import { parentPort, workerData } from "node:worker_threads";
import { flushDenormals } from "../graph/denormals.ts";
import { serveCalls } from "./calls.ts";
import type { EngineOptions } from "./engine.ts";
import { Rank } from "./rank.ts";

flushDenormals();
serveCalls(parentPort!, () => new Rank(workerData as EngineOptions));
