/** What `npm test` knows of a test file from its imports: whether it may share a process, and which programs it needs. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Binary, CONTROL_PLANE, HEALTH, MONITORING, REGISTRY, RELEASE, S3_SERVER } from "../cluster/programs.ts";
import { closureOf, ROOT } from "./imports.ts";

/** With these a file can start processes or threads, or load native code, which may spoil the files that share its process. */
const STARTS = ["node:child_process", "node:worker_threads", "node:cluster", "onnxruntime-node", "koffi"];
/** Changes of the whole process, which other files would notice. A change by `t.mock` ends with its test. */
const CHANGES_PROCESS = /\bprocess\.(?:chdir|umask|setuid)\(|\bprocess\.exitCode =|(?<!\.)\bmock\.(?:timers|method)/;

/** A fixture with hooks of its own: they belong to the first file that loads it, and would end before the second one. */
const HOOKS = /import \{[^}]*\b(?:after|before)\b[^}]*\} from "node:test"/;

/** Something that tests need and that is made while other tests run. */
export type Need = Binary | "tokenizer" | "python";
/** {file: what a test needs that loads the file} */
const NEEDS: Record<string, readonly Need[]> = {
  "test/cluster/control-plane.ts": CONTROL_PLANE,
  "test/cluster/health.ts": HEALTH,
  "test/cluster/registry.ts": REGISTRY,
  "test/cluster/s3-server.ts": S3_SERVER,
  "test/chart/helm.ts": ["helm", "kubectl"],
  "test/observability/prometheus.ts": MONITORING,
  "test/release/release.ts": RELEASE,
  "test/tokenizers.ts": ["tokenizer"],
};

const PYTHON = "actor/python-env.ts";

/** Returns the paths of the test files of `npm test` from the project's root. */
export function testFiles(): string[] {
  return globSync("{actor,charts,controller,crds,learner,proto,test}/**/*.test.ts", { cwd: ROOT }).sort();
}

/** Returns whether a test file starts no process and no thread, so that it can share a process with others of its kind. */
export function startsNothing(file: string): boolean {
  const loaded = closureOf(file);
  if (STARTS.some((name) => loaded.has(name))) return false;
  const fixtures = [...loaded].filter((name) => name !== file && /\.ts$/.test(name) && loaded.has("node:test"));
  return !CHANGES_PROCESS.test(textOf(file)) && !fixtures.some((name) => HOOKS.test(textOf(name)));
}

/** Returns a file's text, or nothing if it is not a file of the project. */
function textOf(file: string): string {
  const path = join(ROOT, file);
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

/** Returns what a test file needs. Each is looked up once. */
export function needsOf(file: string): readonly Need[] {
  const known = needs.get(file) ?? lookUp(file);
  needs.set(file, known);
  return known;
}
const needs = new Map<string, readonly Need[]>();

function lookUp(file: string): Need[] {
  const loaded = closureOf(file);
  const found = Object.entries(NEEDS).flatMap(([provider, its]) => (loaded.has(provider) ? its : []));
  const preparesPython = [...loaded].some(
    (name) => name !== PYTHON && textOf(name).includes("ensurePythonEnvironment("),
  );
  return [...new Set([...found, ...(preparesPython ? (["python"] as const) : [])])];
}
