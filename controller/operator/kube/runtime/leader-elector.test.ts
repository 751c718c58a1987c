/** Candidates for one Lease on a real API server; times are a fraction of the defaults. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { after, afterEach, before, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { KubeConfig } from "@kubernetes/client-node";
import {
  type ControlPlane,
  controlPlaneUnavailable,
  startControlPlane,
} from "../../../../test/cluster/control-plane.ts";
import { ApiProxy } from "../../../../test/faults/api-proxy.ts";
import { TcpProxy } from "../../../../test/faults/tcp-proxy.ts";
import { until } from "../../../../test/until.ts";
import { ApiClient } from "../api-client.ts";
import { LeaseLostError } from "../errors.ts";
import { CONFIG_MAP, type ConfigMap, LEASE, type Lease } from "../resources.ts";
import { suspensionAwareClock } from "./clock.ts";
import { LeaderElector, type LeaderElectorOptions } from "./leader-elector.ts";

const skip = controlPlaneUnavailable();
const TIMES = { leaseSeconds: 2, renewSeconds: 1.2, retrySeconds: 0.2 };
/** For a leader that must stay leader, however slow the machine is. */
const STAYS = { leaseSeconds: 30, renewSeconds: 29 };

let cluster: ControlPlane;
let faults: ApiProxy;
let admin: ApiClient;

before(async () => {
  if (skip) return;
  cluster = await startControlPlane();
  faults = await ApiProxy.start(cluster);
  admin = clientOf(cluster.url);
});
afterEach(() => faults?.clearFaults());
after(async () => {
  admin?.close();
  await faults?.stop();
  await cluster?.stop();
});

function clientOf(server: string, beforeWrite?: () => void): ApiClient {
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: "test", server, caFile: cluster.caFile, skipTLSVerify: false },
    { name: "admin", token: cluster.token },
  );
  return new ApiClient(config, { ...(beforeWrite && { beforeWrite }) });
}

/** A running candidate and its recorded events. */
function candidate(
  t: TestContext,
  name: string,
  identity: string,
  options: Partial<LeaderElectorOptions> & { server?: string } = {},
) {
  const { server = cluster.url, ...rest } = options;
  const happened: string[] = [];
  const client = clientOf(server);
  const elector = new LeaderElector({
    ...{ client, namespace: "default", name, identity, ...TIMES },
    onLeading: () => void happened.push("leading"),
    onLost: (why) => happened.push(`lost: ${why}`),
    ...rest,
  });
  const stop = new AbortController();
  const done = elector.run(stop.signal);
  t.after(async () => {
    stop.abort();
    await done.catch(() => {});
    client.close();
  });
  return { elector, happened, stop, done };
}

const leaseOf = async (name: string) => (await admin.get<Lease>(LEASE, { namespace: "default", name }))!;

test("One of several leads; when it stops, it finishes its work and releases the lease, and another leads at once", {
  skip,
}, async (t) => {
  const work = Promise.withResolvers<void>();
  t.after(() => work.resolve());
  const times = { leaseSeconds: 3, renewSeconds: 2.7 };
  const a = candidate(t, "stop", "a", { onLeading: () => work.promise, ...times });
  await until(() => a.elector.isLeading, "a leads");
  const [b, c] = [candidate(t, "stop", "b", times), candidate(t, "stop", "c", times)];
  await sleep(3500);
  assert.deepEqual([b.elector.isLeading, c.elector.isLeading], [false, false]);
  assert.deepEqual([b.elector.leader, c.elector.leader], ["a", "a"]);
  const { spec } = await leaseOf("stop");
  assert.deepEqual([spec?.holderIdentity, spec?.leaseDurationSeconds, spec?.leaseTransitions], ["a", 3, 0]);
  assert.notEqual(spec?.renewTime, spec?.acquireTime);
  a.stop.abort();
  await sleep(500);
  assert.equal(a.elector.isLeading, true, "the elector leads until its work is done");
  work.resolve();
  await a.done;
  assert.equal(a.elector.isLeading, false);
  const seconds = await until(() => b.elector.isLeading || c.elector.isLeading, "b or c leads");
  assert.ok(seconds < 1, `${seconds} s`);
  assert.notEqual(b.elector.isLeading, c.elector.isLeading);
  assert.equal((await leaseOf("stop")).spec?.leaseTransitions, 1);
});

test("A leader without the API server stops before another leads, which happens within the lease time", {
  skip,
}, async (t) => {
  const tcp = await TcpProxy.start(cluster.url);
  t.after(() => tcp.stop());
  const a = candidate(t, "cut", "a", { server: tcp.url });
  await until(() => a.elector.isLeading, "a leads");
  const b = candidate(t, "cut", "b");
  await until(() => b.elector.leader === "a", "b sees a");
  tcp.mute = true;
  tcp.freeze();
  let both = 0;
  const watch = setInterval(() => {
    if (a.elector.isLeading && b.elector.isLeading) both += 1;
  }, 1);
  const seconds = await until(() => b.elector.isLeading, "b leads");
  await a.done;
  clearInterval(watch);
  assert.equal(both, 0);
  assert.ok(seconds < TIMES.leaseSeconds + 2 * TIMES.retrySeconds + 1, `${seconds} s`);
  assert.match(
    a.happened.join("; "),
    /leading; lost: Lease default\/cut was not renewed for 1\.\d s \(1\.2 s are allowed\)/,
  );
  assert.throws(a.elector.assertLeading, LeaseLostError);
});

test("A lost answer, a conflict or a deleted Lease does not cost the leadership", { skip }, async (t) => {
  const a = candidate(t, "faults", "a", { server: faults.url, ...STAYS });
  await until(() => a.elector.isLeading, "a leads");
  const isRenewal = ({ verb, name }: { verb: string; name?: string }) => verb === "patch" && name === "faults";
  for (const fault of [
    { kind: "lost", how: "reset" },
    { kind: "lost", how: "504" },
    { kind: "answer", code: 409 },
    { kind: "answer", code: 500 },
  ] as const) {
    faults.inject(isRenewal, fault);
    await until(() => faults.pendingFaults === 0, `a renewal meets ${JSON.stringify(fault)}`);
    await sleep(600);
    assert.ok(a.elector.isLeading, JSON.stringify(fault));
  }
  const { metadata } = await leaseOf("faults");
  await admin.delete(LEASE, { namespace: "default", name: "faults" }, { uid: metadata.uid! });
  await sleep(600);
  assert.equal((await leaseOf("faults")).spec?.holderIdentity, "a");
  assert.deepEqual(a.happened, ["leading"]);
});

test("Another's name in the Lease ends the leadership, whoever wrote it", { skip }, async (t) => {
  const a = candidate(t, "stolen", "a", STAYS);
  await until(() => a.elector.isLeading, "a leads");
  await admin.mergePatch(LEASE, { namespace: "default", name: "stolen" }, { spec: { holderIdentity: "thief" } });
  await a.done;
  assert.deepEqual(a.happened, ["leading", "lost: Lease default/stolen is held by thief"]);
});

test("A leader that was paused past its lease does not lead by its clock, writes nothing and never renews", {
  skip,
}, async (t) => {
  let pausedMs = 0;
  const a = candidate(t, "clock", "a", { ...STAYS, now: () => performance.now() + pausedMs });
  await until(() => a.elector.isLeading, "a leads");
  const writer = clientOf(cluster.url, a.elector.assertLeading);
  t.after(() => writer.close());
  const object: ConfigMap = { metadata: { namespace: "default", name: "by-clock" }, data: {} };
  const { metadata } = await writer.create(CONFIG_MAP, object);
  pausedMs = STAYS.renewSeconds * 1000;
  const before = await leaseOf("clock");
  await assert.rejects(writer.delete(CONFIG_MAP, metadata, { uid: metadata.uid! }), LeaseLostError);
  await a.done;
  assert.match(a.happened.at(-1)!, /^lost: .* was not renewed for/);
  assert.equal((await leaseOf("clock")).metadata.resourceVersion, before.metadata.resourceVersion);
  assert.ok(await admin.get(CONFIG_MAP, { namespace: "default", name: "by-clock" }));
});

test("A process that is stopped with SIGSTOP amid its writes and continued writes nothing more", {
  skip,
}, async (t) => {
  const fixture = fileURLToPath(new URL("leader.fixture.ts", import.meta.url));
  // Long enough that the child keeps the lease on a busy machine until it is stopped.
  const times = { leaseSeconds: 6, renewSeconds: 5, retrySeconds: 0.2 };
  const child = spawn(process.execPath, [fixture, cluster.kubeconfig, "child", ...Object.values(times).map(String)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  let said = "";
  child.stdout.on("data", (text) => (said += text));
  const writtenBy = async () =>
    (await admin.get<ConfigMap>(CONFIG_MAP, { namespace: "default", name: "written" }))?.data;
  await until(() => said.includes("leading"), "the child leads");
  await until(async () => (await writtenBy())?.by === "child", "the child writes");
  const b = candidate(t, "paused", "b", times);
  await until(() => b.elector.leader === "child", "b sees the child");
  child.kill("SIGSTOP");
  await until(() => b.elector.isLeading, "b leads");
  const object: ConfigMap = { metadata: { namespace: "default", name: "written" }, data: { by: "b", at: "" } };
  const ours = await admin.apply(CONFIG_MAP, object);
  child.kill("SIGCONT");
  await until(() => child.exitCode !== null, "the child ends");
  assert.equal(child.exitCode, 3);
  const now = (await admin.get<ConfigMap>(CONFIG_MAP, { namespace: "default", name: "written" }))!;
  assert.deepEqual([now.data, now.metadata.resourceVersion], [{ by: "b", at: "" }, ours.metadata.resourceVersion]);
  assert.match(said, /(held back|refused|lost): /);
});

test("Lease times that cannot work are refused", () => {
  const wrong = { leaseSeconds: 10, renewSeconds: 10 };
  assert.throws(() => new LeaderElector(wrong as unknown as LeaderElectorOptions), /leaseSeconds 10 > renewSeconds 10/);
});

test("The clock includes suspensions, never runs backwards, and counts small steps once", () => {
  let [monotonicMs, wallMs] = [0, 1_000_000];
  const now = suspensionAwareClock(
    () => monotonicMs,
    () => wallMs,
  );
  for (let i = 0; i < 1000; i++) {
    monotonicMs += 0.4;
    wallMs = 1_000_000 + Math.round(monotonicMs);
    now();
  }
  assert.equal(Math.round(now()), 400);
  wallMs += 20_000; // suspended: the monotonic clock stood still
  assert.equal(Math.round(now()), 20_400);
  wallMs -= 3_600_000; // set back
  monotonicMs += 10;
  assert.equal(Math.round(now()), 20_410);
});
