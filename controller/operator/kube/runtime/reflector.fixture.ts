/** A reflector of config maps on a real API server, behind proxies that break connections and watches. */
import assert from "node:assert/strict";
import { after, afterEach, before, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { KubeConfig } from "@kubernetes/client-node";
import {
  type ControlPlane,
  controlPlaneUnavailable,
  startControlPlane,
} from "../../../../test/cluster/control-plane.ts";
import { ApiProxy } from "../../../../test/faults/api-proxy.ts";
import { TcpProxy } from "../../../../test/faults/tcp-proxy.ts";
import { ApiClient } from "../api-client.ts";
import { CONFIG_MAP, type ConfigMap, NAMESPACE } from "../resources.ts";
import { Reflector, type ReflectorOptions } from "./reflector.ts";

export const skip = controlPlaneUnavailable();
export const BOUND_SECONDS = 10;

export let cluster: ControlPlane;
export let faults: ApiProxy;
export let tcp: TcpProxy;
/** Connects directly to the API server. */
export let admin: ApiClient;

before(async () => {
  if (skip) return;
  cluster = await startControlPlane();
  [faults, tcp] = await Promise.all([ApiProxy.start(cluster), TcpProxy.start(cluster.url)]);
  admin = new ApiClient(configOf(cluster.url), { qps: 10_000, burst: 10_000 });
});
afterEach(() => {
  faults?.clearFaults();
  faults?.thawReads();
});
after(async () => {
  admin?.close();
  await Promise.all([faults?.stop(), tcp?.stop()]);
  await cluster?.stop();
});

export function configOf(server: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: "test", server, caFile: cluster.caFile, skipTLSVerify: false },
    { name: "admin", token: cluster.token },
  );
  return config;
}

const configMap = (namespace: string, name: string, value: string, metadata: object = {}): ConfigMap => ({
  metadata: { namespace, name, ...metadata },
  data: { value },
});

/** Returns the test's own namespace, a running reflector of its config maps, and the reported changes. */
export async function start(
  t: TestContext,
  options: Partial<ReflectorOptions<ConfigMap>> & { server: string; seed?: string[] },
) {
  const { server, seed = [], ...reflectorOptions } = options;
  const namespace = `t-${Math.random().toString(36).slice(2, 10)}`;
  await admin.create(NAMESPACE, { metadata: { name: namespace } });
  for (const name of seed) await admin.create(CONFIG_MAP, configMap(namespace, name, "0"));
  const client = new ApiClient(configOf(server), { timeoutSeconds: 2 });
  const told: string[] = [];
  const problems: string[] = [];
  const note = (fields: object) => void problems.push((fields as { error?: string }).error ?? "a handler failed");
  const reflector = new Reflector<ConfigMap>({
    client,
    resource: CONFIG_MAP,
    namespace,
    firstBackoffSeconds: 0.02,
    maxBackoffSeconds: 0.2,
    log: { debug: () => {}, warn: note },
    onChange: (key, object, previous) => {
      const name = key.slice(namespace.length + 1);
      if (name === "kube-root-ca.crt") return;
      const [before, now] = [previous?.data?.value, object?.data?.value];
      told.push(previous ? (object ? `${name}: ${before} -> ${now}` : `- ${name}`) : `+ ${name}`);
    },
    ...reflectorOptions,
  });
  const stop = new AbortController();
  const done = reflector.run(stop.signal);
  t.after(async () => {
    stop.abort();
    client.close();
    await done;
  });
  const key = (name: string) => ({ namespace, name });
  return {
    namespace,
    reflector,
    told,
    problems,
    synced: () =>
      until(
        () => reflector.hasSynced,
        () => `not synced: ${problems.join("; ")}`,
      ),
    create: (name: string, metadata = {}) => admin.create(CONFIG_MAP, configMap(namespace, name, "0", metadata)),
    update: (name: string, value: string) => admin.mergePatch(CONFIG_MAP, key(name), { data: { value } }),
    async remove(name: string) {
      const object = (await admin.get(CONFIG_MAP, key(name)))!;
      await admin.delete(CONFIG_MAP, key(name), { uid: object.metadata.uid! });
    },
    /** Waits until the cache equals the API server's state, object by object. */
    async caughtUp() {
      const { items, metadata } = await admin.list<ConfigMap>(CONFIG_MAP, { namespace });
      const stored = state(items);
      await until(
        () => state(reflector.list()) === stored,
        () => `cache ${state(reflector.list())}, API server ${stored} (${metadata.resourceVersion})`,
      );
    },
  };
}

const state = (items: ConfigMap[]) =>
  items
    .map(({ metadata, data }) => `${metadata.name}=${data?.value}@${metadata.resourceVersion}/${metadata.uid}`)
    .sort()
    .join(" ");

export async function until(holds: () => boolean, otherwise: () => string): Promise<void> {
  const deadline = performance.now() + BOUND_SECONDS * 1000;
  while (!holds()) {
    if (performance.now() > deadline) assert.fail(otherwise());
    await sleep(10);
  }
}

/** Returns how often the fault proxy was asked for a list. */
export const lists = (namespace: string) =>
  faults.requests.filter((request) => request.verb === "list" && request.namespace === namespace).length;
export const watches = (namespace: string) =>
  faults.requests.filter((request) => request.verb === "watch" && request.namespace === namespace).length;
