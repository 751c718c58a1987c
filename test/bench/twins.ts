/**
 * `step` and `generate`: a TypeScript program and its Python twin, which do the same work on the same weights and print
 * lines of the same form. They run in turn, and each ratio is of two neighbours.
 */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { peerPython } from "./peers.ts";
import { finished } from "./processes.ts";
import { type Bench, median } from "./result.ts";

/** `evaluate  wall 1234 ms, cpu 1230 ms, 5678 tokens/s`, `longrun  1234 tokens/s, 1200 tokens per CPU second`. */
const LINE = /^(\S.*?)\s+(?:wall (\d+) ms, cpu (\d+) ms, )?(\d+) tokens\/s(?:, (\d+) tokens per CPU second)?/;

/** Tokens per second of wall clock and of CPU time. */
interface Speed {
  wall: number;
  cpu: number;
}

interface Twins {
  about: string;
  method: string;
  ours: string;
  peer: string;
  peerName: string;
  /** The line that the goal is about; empty where each prints a single one. */
  goalOf: string;
  goal: number;
  /** Flags that both are run with, each set in turn; left out: none. Flags of the command line take their place. */
  each?: string[][];
}

function twins(o: Twins): Bench {
  const path = (file: string) => fileURLToPath(new URL(file, import.meta.url));
  return {
    about: o.about,
    async run(flags) {
      if (!existsSync(path(o.peer))) throw new Error(`${o.peer} is not there`);
      const python = await peerPython();
      const at = flags.indexOf("--rounds");
      const [, rounds] = at < 0 ? [] : flags.splice(at, 2);
      const found = new Map<string, { ours: Speed[]; peer: Speed[] }>();
      const sets = o.each && flags.length === 0 ? o.each : [flags];
      for (let round = 0; round < Number(rounds ?? 3); round++) {
        for (const set of sets) {
          const ours = speeds((await finished(process.execPath, [path(o.ours), ...set])).stdout, o.goalOf);
          const peer = speeds((await finished(python, [path(o.peer), ...set])).stdout, o.goalOf);
          for (const [line, speed] of ours) {
            const other = peer.get(line);
            if (other === undefined) continue;
            const name = sets.length > 1 ? `${line || "tokens"} ${set.join(" ")}` : line;
            const entry = found.get(name) ?? { ours: [], peer: [] };
            found.set(name, entry);
            entry.ours.push(speed);
            entry.peer.push(other);
          }
        }
      }
      const compared = [...found];
      const ratio = ({ ours, peer }: { ours: Speed[]; peer: Speed[] }, of: keyof Speed = "wall") =>
        median(ours.map((speed, i) => speed[of] / peer[i]![of]));
      const rows = compared.map(([name, entry]) => ({
        work: name || "tokens",
        "longrun tokens/s": Math.round(median(entry.ours.map(({ wall }) => wall))),
        [`${o.peerName} tokens/s`]: Math.round(median(entry.peer.map(({ wall }) => wall))),
        ratio: `${ratio(entry).toFixed(2)}x`,
        "by CPU time": `${ratio(entry, "cpu").toFixed(2)}x`,
      }));
      const goals = compared
        .filter(([name]) => o.goalOf === "" || name === o.goalOf)
        .map(([name, entry]) => ({
          what: o.goalOf === "" && name !== "" ? `${o.about}, ${name}` : o.about,
          goal: `>= ${o.goal}x`,
          measured: `${ratio(entry).toFixed(2)}x`,
          met: ratio(entry) >= o.goal,
        }));
      return { rows, goals, method: o.method, raw: { flags, rounds: Object.fromEntries(found) } };
    },
  };
}

/** By the line's name; all lines have one name where the goal is about the only one. */
function speeds(stdout: string, goalOf: string): Map<string, Speed> {
  const found = new Map<string, Speed>();
  for (const text of stdout.split("\n")) {
    const match = LINE.exec(text);
    if (!match) continue;
    const [, name, wallMilliseconds, cpuMilliseconds, perSecond, perCpuSecond] = match;
    const wall = Number(perSecond);
    const cpu = Number(perCpuSecond ?? (wall * Number(wallMilliseconds)) / Number(cpuMilliseconds));
    found.set(goalOf === "" ? "" : name!, { wall, cpu });
  }
  return found;
}

export const step = twins({
  about: "log-probs and PPO updates, longrun beside PyTorch eager",
  method:
    "the same sequences, weights, loss and threads; medians of the rounds; by CPU time the load of other work counts less",
  ours: "./step.ts",
  peer: "./step_torch.py",
  peerName: "PyTorch",
  goalOf: "policy update",
  goal: 1,
});

export const generate = twins({
  about: "generation, longrun beside transformers",
  method:
    "the same sizes, prompts, lengths and threads; medians of the rounds; by CPU time the load of other work counts less",
  ours: "./generate.ts",
  peer: "./generate_hf.py",
  peerName: "transformers",
  goalOf: "",
  goal: 3,
  each: [
    ["--rows", "16"],
    ["--rows", "64"],
  ],
});
