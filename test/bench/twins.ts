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
const LINE = /^(\S.*?)\s+(?:wall .*, )?(\d+) tokens\/s/;

interface Twins {
  about: string;
  method: string;
  ours: string;
  peer: string;
  peerName: string;
  /** The line that the goal is about; empty where each prints a single one. */
  goalOf: string;
  goal: number;
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
      const found = new Map<string, { ours: number[]; peer: number[] }>();
      for (let round = 0; round < Number(rounds ?? 3); round++) {
        const ours = speeds((await finished(process.execPath, [path(o.ours), ...flags])).stdout, o.goalOf);
        const peer = speeds((await finished(python, [path(o.peer), ...flags])).stdout, o.goalOf);
        for (const [name, speed] of ours) {
          const entry = found.get(name) ?? { ours: [], peer: [] };
          found.set(name, entry);
          const other = peer.get(name);
          if (other === undefined) continue;
          entry.ours.push(speed);
          entry.peer.push(other);
        }
      }
      const compared = [...found].filter(([, { ours }]) => ours.length > 0);
      const ratio = ({ ours, peer }: { ours: number[]; peer: number[] }) =>
        median(ours.map((speed, i) => speed / peer[i]!));
      const rows = compared.map(([name, entry]) => ({
        work: name || "tokens",
        "longrun tokens/s": Math.round(median(entry.ours)),
        [`${o.peerName} tokens/s`]: Math.round(median(entry.peer)),
        ratio: `${ratio(entry).toFixed(2)}x`,
      }));
      const goals = compared
        .filter(([name]) => name === o.goalOf)
        .map(([, entry]) => ({
          what: o.about,
          goal: `>= ${o.goal}x`,
          measured: `${ratio(entry).toFixed(2)}x`,
          met: ratio(entry) >= o.goal,
        }));
      return { rows, goals, method: o.method, raw: { flags, rounds: Object.fromEntries(found) } };
    },
  };
}

/** Tokens per second by the line's name; all lines have one name where the goal is about the only one. */
function speeds(stdout: string, goalOf: string): Map<string, number> {
  const matches = stdout.split("\n").map((line) => LINE.exec(line));
  return new Map(matches.flatMap((match) => (match ? [[goalOf === "" ? "" : match[1]!, Number(match[2])]] : [])));
}

export const step = twins({
  about: "log-probs and PPO updates, longrun beside PyTorch eager",
  method: "the same 64 sequences, weights, loss and threads; median of the rounds' ratios",
  ours: "./step.ts",
  peer: "./step_torch.py",
  peerName: "PyTorch",
  goalOf: "policy update",
  goal: 1,
});

export const generate = twins({
  about: "generation, longrun beside transformers",
  method: "the same weights, prompts, lengths and threads; median of the rounds' ratios",
  ours: "./generate.ts",
  peer: "./generate_hf.py",
  peerName: "transformers",
  goalOf: "",
  goal: 2.5,
});
