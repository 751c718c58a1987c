/**
 * `npm run test:abuse:node`: runs the hostile programs in an actor's pod on a real node, and compares the results with the fixture's.
 *
 *     node test/abuse/node.ts [--only NAME,…] [--markdown]
 *
 * The pod is the one that the controller renders, with a kubelet, containerd and the images of the Dockerfile (test/e2e). The learner is
 * its server and its store, in this process; it leases these programs instead of a policy's. Needs Linux and root.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { pino } from "pino";
import { DEFAULT_LIMITS } from "../../actor/limits.ts";
import { ensurePythonEnvironment } from "../../actor/python-env.ts";
import {
  actorName,
  childName,
  GRPC_PORT,
  learnerHosts,
  type Run,
  tlsSecret,
} from "../../controller/operator/desired/names.ts";
import { desiredActor } from "../../controller/operator/parts/actors/desired.ts";
import { runOf } from "../../controller/operator/run.fixture.ts";
import { startServer } from "../../learner/server/server.ts";
import { StatusBoard } from "../../learner/server/status.ts";
import { newSample } from "../../learner/store/store.fixture.ts";
import { openStore } from "../../learner/store/store.ts";
import type { Sample } from "../../learner/store/types.ts";
import { writeRunCertificates } from "../../proto/certificates.ts";
import { startCluster } from "../cluster/node.ts";
import { ADDRESSES } from "../cluster/node-config.ts";
import { buildImages } from "../e2e/images.ts";
import { Kubectl } from "../e2e/kubectl.ts";
import { lookForTools } from "../lane-tools.ts";
import { expectationOf } from "./expectations.ts";
import { HOSTILE, SHORT_SECONDS } from "./suite.ts";
import { fillIn, systemCalls } from "./world.ts";

const NAMESPACE = "hostile";
const MEMORY_BYTES = 256 << 20;
const SCRATCH_BYTES = 64 << 20;
const START_SECONDS = 180;
/** For one program, including its kill and its clean-up. */
const LONGEST_SECONDS = 60;
/** How late a program may end after its time limit. */
const LATE_SECONDS = 1;
/** Programs that need the fixture: a neighbour that it starts, seeds or a nonce that it chooses, or a lease of more than 4 MiB. */
const OF_THE_FIXTURE = [
  "program_of_50_mb",
  "other_slots",
  "guess_random",
  "dug_out_nonce",
  "replay_nonce",
  "print_nonce_apart",
  "forged_markers",
];
const LONG_SECONDS = 30;
/** Time limit of the current program. */
let timeoutSeconds = LONG_SECONDS;

const { values } = parseArgs({
  options: { only: { type: "string" }, markdown: { type: "boolean", default: false } },
});
lookForTools("test:abuse:node");
const names = values.only?.split(",") ?? HOSTILE.filter((name) => !OF_THE_FIXTURE.includes(name));
/** Values for the sandbox's container: the targets of attacks. */
const VALUES = {
  ANSWERS: "/opt/longrun-tasks/diamonds/prepared/private/answers.csv",
  OUTSIDE: "/etc",
  TASK: "/opt/longrun-tasks/diamonds",
  SUPERVISOR: "1",
  VICTIM: "1",
  TCP: String(GRPC_PORT),
  UDP: "53",
  ABSTRACT: "longrun",
  SANDBOX: "/opt/longrun/actor/sandbox",
  ...{ CONTROL: "/sandbox/control.sock", NEIGHBOUR: "/sandbox", NONCE: "0".repeat(32), NUL: "\0" },
  ...systemCalls((await ensurePythonEnvironment()).directory, "landlock"),
};
const say = (line: string) => process.stderr.write(`${line}\n`);
const folder = mkdtempSync(join(tmpdir(), "longrun-abuse-node-"));

const archives = await buildImages(say);
const cluster = await startCluster({ log: say });
const failures: string[] = [];
const rows: string[][] = [];
try {
  for (const archive of archives) await cluster.importImage(archive);
  await attackAll(new Kubectl(cluster.kubectl, cluster.kubeconfig, NAMESPACE));
} finally {
  await cluster.stop();
  rmSync(folder, { recursive: true, force: true });
}
for (const row of rows) process.stdout.write(values.markdown ? `| ${row.join(" | ")} |\n` : `${row.join("  ")}\n`);
for (const failure of failures) process.stdout.write(`\nFAILED ${failure}\n`);
process.stdout.write(`\n${rows.length} programs on a node, ${failures.length} failed\n`);
process.exit(failures.length > 0 ? 1 : 0);

async function attackAll(kubectl: Kubectl): Promise<void> {
  const limits = { executionMemoryBytes: MEMORY_BYTES, scratchBytes: SCRATCH_BYTES };
  const run = runOf(
    { tasks: [{ name: "diamonds", ...limits }], actors: { slots: 1, imagePullPolicy: "Never" } },
    {},
    { name: "attacks", namespace: NAMESPACE },
  );
  const certificates = await writeRunCertificates(join(folder, "tls"), {
    validSeconds: 86400,
    hosts: learnerHosts(run),
  });
  const store = openStore(join(folder, "store.sqlite"), { leaseSeconds: 60, leaseGraceSeconds: 60, maxAttempts: 1 });
  await store.beginLineage(() => true);
  const server = await startServer({
    ...{ store, status: new StatusBoard(), address: `0.0.0.0:${GRPC_PORT}`, tlsDirectory: certificates.learner },
    limitsOf: () => ({
      ...DEFAULT_LIMITS,
      ...{ timeoutSeconds, memoryBytes: MEMORY_BYTES, outputBytes: 1 << 20 },
      ...{ keptOutputBytes: 8 << 10, scratchBytes: SCRATCH_BYTES, scratchFiles: 500, processes: 32 },
      submissionBytes: 1 << 20,
    }),
    log: pino({ level: "silent" }),
    suspend: async () => ({}),
  });
  try {
    const pod = await startActor(kubectl, run, certificates.actor);
    let expected = await restartsOf(kubectl, pod);
    for (const [index, name] of names.entries()) {
      const since = performance.now();
      const result = await attack(store, name, index);
      const seconds = ((performance.now() - since) / 1000).toFixed(1);
      const restarts = await restartsOf(kubectl, pod);
      if (restarts !== expected) failures.push(`${name}: containers of the pod were restarted: ${restarts}`);
      expected = restarts;
      rows.push([name, result]);
      say(`${name}: ${result} (${seconds} s)`);
    }
    say(await kubectl.run("get", "pods", "--output", "wide"));
  } finally {
    await server.close();
    store.close();
  }
}

/** Creates the Job that the controller renders, and its other objects. @returns the pod's name */
async function startActor(kubectl: Kubectl, run: Run, certificate: (name: string) => Promise<string>): Promise<string> {
  await kubectl.run("create", "namespace", NAMESPACE);
  await kubectl.run("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted");
  const name = actorName(run, 0, 0);
  const tls = await certificate(name);
  const files = ["ca.crt", "tls.crt", "tls.key"].map((file) => [
    file,
    readFileSync(join(tls, file)).toString("base64"),
  ]);
  const service = childName(run, "learner");
  const ports = [{ name: "grpc", port: GRPC_PORT, protocol: "TCP" }];
  const named = (target: string) => `registry.example.com/ml/longrun/${target}:0.2.0`;
  const images = { image: named("learner"), actorImage: named("actor"), sandboxImage: named("sandbox") };
  const job = desiredActor(run, 0, 0, { ...images, imagePullPolicy: "Never" });
  delete job.metadata.ownerReferences;
  for (const object of [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: childName(run, "actor") } },
    { apiVersion: "v1", kind: "Secret", metadata: { name: tlsSecret(name) }, data: Object.fromEntries(files) },
    { apiVersion: "v1", kind: "Service", metadata: { name: service }, spec: { ports } },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { name: service, labels: { "kubernetes.io/service-name": service } },
      addressType: "IPv4",
      endpoints: [{ addresses: [ADDRESSES.machine] }],
      ports: [{ name: "grpc", port: GRPC_PORT, protocol: "TCP" }],
    },
    job,
  ])
    await kubectl.apply(object);
  return kubectl.until("the actor's pod is ready", START_SECONDS, async () => {
    const pods = await kubectl.items<{ metadata: { name: string }; status: { phase: string } }>("pods");
    return pods.find(({ status }) => status.phase === "Running")?.metadata.name;
  });
}

async function restartsOf(kubectl: Kubectl, pod: string): Promise<string> {
  interface Status {
    name: string;
    restartCount: number;
    lastState?: { terminated?: { reason: string } };
  }
  const { status } = await kubectl.json<{
    status: { containerStatuses?: Status[]; initContainerStatuses?: Status[] };
  }>("get", "pod", pod);
  const all = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  return all.map((it) => `${it.name} ${it.restartCount} ${it.lastState?.terminated?.reason ?? ""}`.trim()).join(", ");
}

/** @returns the result in one word; violations are in `failures` */
async function attack(store: ReturnType<typeof openStore>, name: string, index: number): Promise<string> {
  const expected = expectationOf(name, "landlock")!;
  const outcomes = [expected.outcome ?? "completed"].flat();
  timeoutSeconds = outcomes.includes("timedOut") ? SHORT_SECONDS : LONG_SECONDS;
  const text = fillIn(readFileSync(join(import.meta.dirname, `${name}.py`), "utf8"), VALUES);
  const programs = { program: text, instrumented: text, instrumenter: "None", insertedMarkers: [] };
  const times = expected.twice ? 2 : 1;
  let sample: Sample | undefined;
  for (let time = 0; time < times; time++) {
    const id = `${name}-${index}-${time}`;
    store.addSamples([newSample(id, programs)]);
    sample = await finished(store, id);
  }
  const { result, state } = sample!;
  const output = result?.terminalOutput ?? "";
  const said = `${name}: ${state} ${result?.outcome} ${result?.detail}\n${output.slice(-1000)}`;
  const held = !expected.held || output.endsWith("held\n");
  const late = result !== undefined && result.durationSeconds > timeoutSeconds + LATE_SECONDS;
  const refused = !expected.refused || expected.refused.test(result?.submissionRefused ?? "");
  if (!result || !outcomes.includes(result.outcome) || output.includes("BREACH") || !held || late || !refused)
    failures.push(said);
  if (expected.open) return "OPEN";
  if (expected.refused) return "refused";
  return result?.outcome === "completed" ? "held" : (result?.outcome ?? state);
}

async function finished(store: ReturnType<typeof openStore>, id: string): Promise<Sample> {
  const done = Promise.withResolvers<void>();
  const look = () => {
    const [sample] = store.samples([id]);
    if (sample && !["queued", "leased"].includes(sample.state)) done.resolve();
  };
  store.events.on("finished", look);
  store.events.on("attemptLost", look);
  const late = setTimeout(done.resolve, LONGEST_SECONDS * 1000);
  await done.promise;
  clearTimeout(late);
  store.events.off("finished", look);
  store.events.off("attemptLost", look);
  const [sample] = store.samples([id]);
  assert.ok(sample);
  return sample;
}
