/** E5: systems. Wall-clock time to the same number of trained samples with each `collection`, and the cost of killed processes. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { groupedPlot } from "../../learner/report/plots.ts";
import { color } from "../../learner/report/theme.ts";
import { duration } from "./budget.ts";
import type { AskedRun } from "./execute.ts";
import { gridFlags, type Ran, runGrid } from "./grid.ts";
import { ITERATIONS, type Killed, runWithKills } from "./kills.ts";
import { table } from "./page.ts";
import { COLORS, coursesPlot } from "./plots.ts";
import type { Experiment, Findings } from "./result.ts";
import { type Collecting, MEDIAN_SECONDS, readCollecting, SIGMA, trainWithSleepers } from "./sleepers.ts";
import { type Estimate, estimate, LEAST_SEEDS, mean, show } from "./statistics.ts";

const MANIFEST = "E5.yaml";
const GOAL = 2.5;
const WAIT_ALL = "WaitAll";
const ARMS: Record<string, string[]> = {
  [WAIT_ALL]: ["algorithm.collection=WaitAll"],
  CarryOver: ["algorithm.collection=CarryOver"],
  "CarryOver, staleness up to 8": ["algorithm.collection=CarryOver", "algorithm.maxStaleness=8"],
  Discard: ["algorithm.collection=Discard"],
};
const KILLS = "kills";

type Row = { arm: string; seed: number; collecting: Collecting };

export const e5: Experiment = {
  question: "Does collecting wait for slow programs, and what do killed processes cost?",
  async run(flags) {
    const given = gridFlags(flags, { budget: "30m" });
    const manifest = fileURLToPath(new URL(`./manifests/${MANIFEST}`, import.meta.url));
    const runs: (AskedRun & { arm: string })[] = [];
    for (let seed = 0; seed < given.seeds; seed++) {
      for (const [arm, own] of Object.entries(ARMS)) {
        const set = [`seed=${seed}`, ...own];
        runs.push({
          ...{ arm, seed, kind: arm, manifest: MANIFEST, set, guessSeconds: arm === WAIT_ALL ? 80 : 40 },
          folder: `E5/${arm} ${seed}`.replaceAll(",", "").replaceAll(" ", "-"),
          execute: (directory) => trainWithSleepers(manifest, set, directory),
        });
      }
      runs.push({
        ...{ arm: KILLS, seed, kind: KILLS, manifest: "", set: [], guessSeconds: 60, folder: `E5/kills-${seed}` },
        execute: (directory) => runWithKills(seed, directory),
      });
    }
    const ran = await runGrid("E5", runs, given);
    const rows: Row[] = [];
    const killed: (Killed & { seed: number })[] = [];
    for (const [{ arm, seed }, directory] of ran.directories) {
      if (arm === KILLS)
        killed.push({ seed, ...(JSON.parse(readFileSync(join(directory, "killed.json"), "utf8")) as Killed) });
      else rows.push({ arm, seed, collecting: await readCollecting(directory) });
    }
    return findings(rows, killed, ran);
  },
};

const secondsOf = ({ iterations }: Collecting) => iterations.at(-1)!.elapsed;
const histogram = (rows: Row[], name: "launched" | "trained") =>
  rows[0]!.collecting.edgesSeconds.map((_, bin) => rows.reduce((sum, row) => sum + row.collecting[name][bin]!, 0));

function findings(rows: Row[], killed: (Killed & { seed: number })[], ran: Ran): Findings {
  const of = (arm: string) => rows.filter((row) => row.arm === arm);
  const arms = Object.keys(ARMS).filter((arm) => of(arm).length > 0);
  const ratios = arms
    .filter((arm) => arm !== WAIT_ALL)
    .map((arm) => ({ arm, ratio: estimate(ratioBySeed(of(WAIT_ALL), of(arm))) }));
  const perArm = (arm: string, value: (collecting: Collecting) => number): Estimate =>
    estimate(of(arm).map(({ collecting }) => value(collecting)));
  const average = (key: "learnerIdle" | "actorsBusy" | "lag") => (collecting: Collecting) =>
    mean(collecting.iterations.map((line) => line[key]));
  const trained = ({ iterations }: Collecting) => iterations.reduce((sum, { samples }) => sum + samples, 0);
  const fewest = Math.min(...ratios.map(({ ratio }) => ratio.n), killed.length);
  const partial =
    ran.missing > 0 || fewest < LEAST_SEEDS
      ? [
          `**Partial: ${fewest} whole ${fewest === 1 ? "seed" : "seeds"}.** Fewer than ${LEAST_SEEDS} are shown without a claim.`,
          "",
        ]
      : [];
  const page = [
    "# E5: does collecting wait for slow programs, and what do killed processes cost?",
    "",
    ...partial,
    `A real learner with a fixed policy, and the actors' real client. Programs sleep, log-normal with median ${MEDIAN_SECONDS} s and sigma ${SIGMA}, equally long for`,
    `the same sample in every arm; 24 slots, so that nothing queues; batches of 16. ${ran.directories.size} runs, ${duration(ran.seconds)} in all, ${ratios.length} comparisons with ${WAIT_ALL}, paired by`,
    "seed, bootstrap 95 % intervals over seeds, none corrected for their number.",
    "",
    ...table(
      [
        "less time than WaitAll for as many trained samples",
        "seeds",
        `times as fast (goal: CarryOver ${GOAL})`,
        "verdict",
      ],
      ratios.map(({ arm, ratio }) => [arm, String(ratio.n), show(ratio), verdict(arm, ratio)]),
    ),
    "",
    ...table(
      ["arm", "seeds", "trained samples", "seconds", "learner idle", "actors busy", "lag"],
      arms.map((arm) => [
        ...[arm, String(of(arm).length), show(perArm(arm, trained), 0), show(perArm(arm, secondsOf), 1)],
        ...[show(perArm(arm, average("learnerIdle"))), show(perArm(arm, average("actorsBusy")))],
        show(perArm(arm, average("lag"))),
      ]),
    ),
    "",
    "## Kills",
    "",
    `\`longrun run\` with real programs, ${ITERATIONS} iterations of 16; SIGKILL to the actor after the first, to a sandbox after the second, to the learner after the third.`,
    "Shares are means over iterations without a kill, with two slots beside a learner of one thread.",
    "",
    ...table(
      [
        "seed",
        "trained / expected",
        "lost",
        "doubled",
        "attempts repeated",
        "learner serves again after",
        "actors busy",
        "learner idle",
      ],
      killed.map((it) => [
        ...[
          String(it.seed),
          `${it.trained} / ${it.expected}`,
          String(it.lost),
          String(it.doubled),
          String(it.repeated),
        ],
        ...[`${it.servingAgainSeconds.toFixed(1)} s`, it.actorsBusy.toFixed(2), it.learnerIdle.toFixed(2)],
      ]),
    ),
    "",
  ].join("\n");
  const series = Object.keys(ARMS).map((label, index) => ({ label, color: COLORS[index]! }));
  const plots: Findings["plots"] = [
    {
      name: "E5",
      description: "Trained samples by wall-clock under each collection",
      spec: coursesPlot(
        [
          [
            {
              ...{ title: "Trained samples by time", x: "seconds", y: "samples" },
              points: rows.flatMap(({ arm, seed, collecting }) =>
                collecting.iterations.map(({ elapsed }, index) => ({
                  ...{ x: elapsed, y: 16 * (index + 1), series: arm, seed, step: index },
                })),
              ),
            },
          ],
        ],
        series,
      ),
    },
  ];
  if (of("Discard").length > 0) plots.push(launchedAndTrained(of("Discard"), of("CarryOver")));
  return { page, plots, raw: { runs: rows, killed, ratios } };
}

function verdict(arm: string, { n, interval }: Estimate): string {
  if (n < LEAST_SEEDS || !interval) return "too few seeds";
  const faster = interval[0] > 1 ? "faster" : interval[1] < 1 ? "slower" : "no difference seen";
  if (arm !== "CarryOver") return faster;
  return `${faster}; goal ${interval[0] >= GOAL ? "met" : "not met"}`;
}

function ratioBySeed(slow: Row[], fast: Row[]): number[] {
  return slow.flatMap(({ seed, collecting }) => {
    const other = fast.find((row) => row.seed === seed);
    return other ? [secondsOf(collecting) / secondsOf(other.collecting)] : [];
  });
}

/** Returns the shares of launched and trained samples by duration. */
function launchedAndTrained(discard: Row[], carryOver: Row[]): Findings["plots"][number] {
  const edges = discard[0]!.collecting.edgesSeconds;
  const all = [
    { label: "launched", color: color("grey"), counts: histogram(discard, "launched") },
    { label: "trained on, Discard", color: color("red"), counts: histogram(discard, "trained") },
    ...(carryOver.length > 0
      ? [{ label: "trained on, CarryOver", color: color("blue"), counts: histogram(carryOver, "trained") }]
      : []),
  ];
  const used = edges.map((_, bin) => bin).filter((bin) => all.some(({ counts }) => counts[bin]! > 0));
  const bars = all.flatMap(({ label, counts }) => {
    const total = counts.reduce((sum, count) => sum + count, 0);
    return used.map((bin) => ({ group: String(edges[bin]), y: counts[bin]! / total, series: label }));
  });
  const text = { x: { title: "seconds that a program slept, from" }, y: { title: "share of programs", format: ".0%" } };
  const spec = groupedPlot(bars, all, text, "half");
  const drawn = spec as unknown as { encoding: { color: Record<string, unknown> } };
  drawn.encoding.color.legend = { disable: false, title: null, orient: "top" };
  return { name: "E5-durations", description: "Durations of what was launched and of what was trained on", spec };
}
