/**
 * What each lane of tests (a script of package.json) needs on this machine. A lane looks first: one line and status 2 if it cannot be run
 * here, or one line and fewer tests.
 *
 *     node test/lane-tools.ts test:faults      the first step of a lane whose next step is `node test/run.ts`
 */
import { findChromium } from "./browser/chromium.ts";
import {
  type Binary,
  CONTROL_PLANE,
  fromLayer,
  missingBinaries,
  NODE,
  OBSERVABILITY,
  RELEASE,
} from "./cluster/binaries.ts";
import { nodeUnavailable } from "./cluster/node.ts";
import { type Architecture, missingEmulation } from "./e2e/emulation.ts";
import { PROGRAMS } from "./e2e/images.ts";
import { missingRehearsal } from "./rehearsal/build.ts";
import { findTool, missingTools, type Tool } from "./tools.ts";

interface Lane {
  /** Returns why the lane cannot be run here, in one line with the remedy, or undefined. */
  unavailable(): string | undefined;
  /** Programs without which some of its tests are skipped. */
  some?: readonly Tool[];
}

const python = () => missingTools(["python3"]);
/** Lanes that start a node build the images first, and the node's programs. */
const node = () => nodeUnavailable() ?? missingTools([...PROGRAMS, "tar", "python3"]) ?? unbuildable(NODE);

export const LANES = {
  test: {
    unavailable: () => missingTools(["python3", "tar"]),
    some: ["bash", "git", "mount", "prlimit", "setpriv", "unshare"],
  },
  "test:abuse": { unavailable: python, some: ["unshare"] },
  "test:abuse:node": { unavailable: node },
  "test:browser": {
    unavailable: () => (findChromium() ? undefined : "no browser: apt-get install chromium, or name one in CHROMIUM"),
  },
  "test:chaos": { unavailable: () => node() ?? unbuildable(["prometheus"]) },
  "test:chaos -- --local": { unavailable: python },
  "test:chart": { unavailable: () => missingTools(["python3", "tar"]) ?? unbuildable(CONTROL_PLANE) },
  "test:e2e": { unavailable: node },
  "test:faults": { unavailable: python, some: ["mount", "unshare"] },
  "test:mutations": { unavailable: () => missingTools(["git", "python3"]) },
  "test:observability": { unavailable: () => unbuildable(OBSERVABILITY) },
  "test:parity": { unavailable: () => missingTools(["tar"]), some: ["python3"] },
  "test:real": { unavailable: python },
  "test:rehearsal": { unavailable: () => missingRehearsal() && missingTools(["cc", "python3"]) },
  "test:release": {
    unavailable: () => unemulated() ?? missingTools([...PROGRAMS, "git", "tar"]) ?? unbuildable(RELEASE),
  },
  "test:tasks": { unavailable: python },
} satisfies Record<string, Lane>;

/** Returns why these programs can be neither found nor built: there is no Go. npm fetches Helm and kubectl. */
export function unbuildable(names: readonly Binary[]): string | undefined {
  const missing = missingBinaries(names.filter((name) => !fromLayer(name)));
  return findTool("go") ? undefined : missing;
}

/** Architectures of a release that is tried: `LONGRUN_RELEASE_ARCHITECTURES`, or both. */
export const releaseArchitectures = () =>
  (process.env.LONGRUN_RELEASE_ARCHITECTURES ?? "amd64,arm64").split(",") as Architecture[];
const unemulated = () =>
  releaseArchitectures()
    .map(missingEmulation)
    .find((it) => it !== undefined);

/** Prints what the lane lacks. Ends this process with 2 if the lane cannot be run here. */
export function lookForTools(name: keyof typeof LANES): void {
  const { unavailable, some = [] }: Lane = LANES[name];
  endWithout(name, unavailable());
  const lacking = missingTools(some);
  if (lacking) process.stderr.write(`${name}: ${lacking}; tests that need them are skipped\n`);
}

/** Ends this process with 2 if there is a reason why a lane cannot be run here. */
export function endWithout(name: string, reason: string | undefined): void {
  if (reason === undefined) return;
  process.stderr.write(`${name} cannot be run here: ${reason}\n`);
  process.exit(2);
}

if (import.meta.main) lookForTools(process.argv[2] as keyof typeof LANES);
