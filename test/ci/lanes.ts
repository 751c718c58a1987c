/** What a fresh machine runs after `npm ci`, as the README says it. */
export interface Lane {
  name: string;
  command: readonly string[];
  env?: Record<string, string>;
  /** Processors that it keeps busy. Lanes of one processor run side by side. */
  cores: 1 | 2;
  /** Whether it runs what failed once more by itself, and records that. Another lane is run again as a whole. */
  triesAgain: boolean;
  /** Usual time on two cores. A lane is run again only if so much time is left. */
  seconds: number;
  /** Whether the lane beside it goes first. Such a lane computes and has no deadlines of seconds. */
  givesWay?: boolean;
  /** Lanes beside which it cannot run. */
  apartFrom?: readonly string[];
  /** Why it cannot run here, or undefined. */
  without?: () => string | undefined;
}

const STRICT = ["--", "--twice", "--strict"];
const npm = (script: string, ...args: string[]) => ["npm", "run", "--silent", script, ...args];
const isRoot = process.getuid?.() === 0;

/** In the order of their starts: the longest of those that run side by side come first. */
export const LANES: readonly Lane[] = [
  { name: "check", command: npm("check"), cores: 2, triesAgain: false, seconds: 20 },
  { name: "tests", command: npm("test", ...STRICT), cores: 2, triesAgain: true, seconds: 400 },
  {
    name: "CUDA, rehearsed",
    command: npm("test:rehearsal", ...STRICT, "--waiting", "1"),
    cores: 1,
    triesAgain: true,
    seconds: 900,
    givesWay: true,
  },
  {
    ...{ name: "end to end, on a node", command: npm("test:e2e"), cores: 1, triesAgain: false, seconds: 400 },
    // At its end it checks that no mount and no control group is new; these lanes make some.
    apartFrom: ["hostile programs", "faults", "quickstart, two iterations"],
    without: () => (isRoot ? undefined : "needs root"),
  },
  { name: "hostile programs", command: npm("test:abuse"), cores: 1, triesAgain: false, seconds: 250 },
  {
    name: "the chart, on an API server",
    command: npm("test:chart", ...STRICT, "--waiting", "2"),
    cores: 1,
    triesAgain: true,
    seconds: 200,
  },
  {
    // Each property test takes a minute.
    name: "hostile messages",
    command: ["node", "test/run.ts", ...STRICT.slice(1), "--busy", "1"].concat([
      ...["learner/server/hostile.test.ts", "actor/sandbox-frames.test.ts", "actor/lease.test.ts"],
    ]),
    env: { LONGRUN_FUZZ_SECONDS: "60" },
    ...{ cores: 1, triesAgain: true, seconds: 200 },
  },
  {
    name: "faults",
    command: npm("test:faults", ...STRICT, "--waiting", "2"),
    cores: 1,
    triesAgain: true,
    seconds: 150,
  },
  {
    name: "a real model",
    command: npm("test:real", ...STRICT, "--busy", "1"),
    cores: 2,
    triesAgain: true,
    seconds: 300,
  },
  {
    name: "quickstart, two iterations",
    command: ["node", "test/ci/quickstart.ts"],
    cores: 1,
    triesAgain: false,
    seconds: 60,
  },
];
