/** Tests how programs are found, the messages if they are missing, and that a control plane leaves nothing behind. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { KubeConfig } from "@kubernetes/client-node";
import { ApiClient } from "../../controller/operator/kube/api-client.ts";
import { NAMESPACE, SERVICE_ACCOUNT } from "../../controller/operator/kube/resources.ts";
import { eventually } from "../controller/world.ts";
import { CONTROL_PLANE, ensureBinaries, findBinary, missingBinaries } from "./binaries.ts";
import { type ControlPlane, controlPlaneUnavailable, startControlPlane } from "./control-plane.ts";

const folder = await mkdtemp(join(tmpdir(), "longrun-binaries-"));
after(() => rm(folder, { recursive: true }));

async function program(path: string): Promise<string> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, "#!/bin/sh\n");
  await chmod(path, 0o755);
  return path;
}

test("findBinary looks in KUBEBUILDER_ASSETS, then in PATH, then in the cache", async () => {
  const env = { KUBEBUILDER_ASSETS: join(folder, "assets"), PATH: `${folder}/a:${folder}/b`, LONGRUN_CACHE: folder };
  assert.equal(findBinary("etcd", env), undefined);
  const cached = await program(join(folder, "cluster/etcd-3.6.4/etcd"));
  assert.equal(findBinary("etcd", env), cached);
  const onPath = await program(join(folder, "b/etcd"));
  assert.equal(findBinary("etcd", env), onPath);
  await writeFile(join(folder, "a"), "a file, not a folder");
  const asset = await program(join(folder, "assets/etcd"));
  assert.equal(findBinary("etcd", env), asset);
});

test("Missing programs give one line with their names and the remedy", async () => {
  const env = { PATH: "", LONGRUN_CACHE: join(folder, "none") };
  const line = missingBinaries(CONTROL_PLANE, env)!;
  assert.match(
    line,
    /^etcd, kube-apiserver, kube-controller-manager not found: run `node test\/cluster\/binaries.ts` \(needs Go >= .*KUBEBUILDER_ASSETS/,
  );
  assert.match(missingBinaries(["kubelet"], env)!, /binaries\.ts --all/);
  await assert.rejects(
    ensureBinaries(["etcd"], { env }),
    /^Error: cannot build etcd: no `go` on PATH. Install Go [^\n]*$/,
  );
});

test("Programs of one module are built by one `go build`, beside those of others", async () => {
  const cache = join(folder, "built");
  // Makes a file for each package that it is asked to build, as `go build -o` names it.
  const go = `#!/bin/sh
case "$1 $2" in
"env GOVERSION") echo go1.99 ;;
"mod download") echo '{"GoMod":"none"}' ;;
"mod edit") echo '{"Replace":[]}' ;;
build*)
  echo "$@" >> ${folder}/go.log
  while [ "$1" != -o ]; do shift; done
  case "$2" in
  */) mkdir -p "$2"; out=$2; shift 2; for package; do echo x > "$out\${package##*/}"; done ;;
  *) mkdir -p "\${2%/*}"; echo x > "$2" ;;
  esac ;;
esac
`;
  await program(join(folder, "go/go"));
  await writeFile(join(folder, "go/go"), go);
  const env = { PATH: `${folder}/go:/usr/bin:/bin`, LONGRUN_CACHE: cache };
  const lines: string[] = [];
  const found = await ensureBinaries(["etcd", ...CONTROL_PLANE, "etcd"], { env, log: (line) => lines.push(line) });
  assert.deepEqual(Object.keys(found).sort(), [...CONTROL_PLANE].sort());
  for (const path of Object.values(found)) assert.ok(existsSync(path), path);
  const builds = readFileSync(join(folder, "go.log"), "utf8").trim().split("\n");
  assert.deepEqual(
    builds.map((line) => line.split(" ").filter((word) => /\/(?:cmd|server)\//.test(word)).length),
    [1, 2],
  );
  assert.match(
    lines.join("\n"),
    /^building etcd v.*\nbuilt etcd in .*\nbuilding kube-apiserver, kube-controller-manager v/,
  );
});

const skip = process.platform === "linux" ? controlPlaneUnavailable() : "looks into /proc, which only Linux has";

/** Starts a control plane, prints its address, and waits to be ended. */
const HOLDER = `
  import { startControlPlane } from ${JSON.stringify(pathToFileURL(join(import.meta.dirname, "control-plane.ts")))};
  const cluster = await startControlPlane({ users: { someone: ["system:masters"] } });
  const call = (user, path, init) => fetch(cluster.url + path, { ...init, headers: { authorization: "Bearer " + cluster.tokenOf(user), "content-type": "application/json" } });
  await call("someone", "/api/v1/namespaces", { method: "POST", body: JSON.stringify({ metadata: { name: "audited" } }) });
  await call("admin", "/api/v1/namespaces/audited");
  const audit = cluster.audit().filter(({ name }) => name === "audited").map(({ user, verb, code }) => [user, verb, code].join(" "));
  console.log(JSON.stringify({ folder: cluster.folder, audit }));
  setInterval(() => {}, 1000);
`;

test("A killed test leaves no process and no folder; the audit log names the user of each request", {
  skip,
}, async () => {
  // The authority cannot be trusted before it is made.
  const env = { ...process.env, NODE_TLS_REJECT_UNAUTHORIZED: "0", NODE_NO_WARNINGS: "1" };
  const holder = spawn(process.execPath, ["--input-type=module", "-e", HOLDER], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  after(() => holder.kill("SIGKILL"));
  const output = text(holder.stdout);
  const line = await new Promise<string>((resolve, reject) => {
    holder.stdout.on("data", (chunk) => resolve(String(chunk)));
    holder.on("exit", (code) => reject(new Error(`the holder ended with ${code}`)));
  });
  const { folder, audit } = JSON.parse(line);
  assert.deepEqual(audit, ["someone create 201", "admin get 200"]);
  assert.equal(mentioning(folder).length, 3, "etcd, the API server and the guard");
  holder.kill("SIGKILL");
  await output;
  for (let tries = 0; tries < 100 && (existsSync(folder) || mentioning(folder).length > 0); tries++) await sleep(50);
  assert.deepEqual(mentioning(folder), []);
  assert.equal(existsSync(folder), false);
});

describe("A control plane whose programs end", {
  skip: skip || (controlPlaneUnavailable(CONTROL_PLANE) ?? false),
}, () => {
  let controlPlane: ControlPlane;
  before(async () => {
    controlPlane = await startControlPlane({ controllers: ["serviceaccount-controller"] });
  });
  after(() => controlPlane?.stop());

  test("The controller manager is started again", async () => {
    const first = controlPlane.pids["kube-controller-manager"]!;
    process.kill(first, "SIGKILL");
    const config = new KubeConfig();
    config.loadFromFile(controlPlane.kubeconfig);
    const client = new ApiClient(config);
    try {
      await client.create(NAMESPACE, { metadata: { name: "later" } });
      await eventually(() => client.get(SERVICE_ACCOUNT, { namespace: "later", name: "default" }));
    } finally {
      client.close();
    }
    assert.notEqual(controlPlane.pids["kube-controller-manager"], first);
  });

  test("An API server that is restarted while etcd is away is started again until etcd is back", async () => {
    const away = controlPlane.restart("etcd", 30);
    const first = controlPlane.restart("kube-apiserver").then(() => controlPlane.pids["kube-apiserver"]);
    await sleep(1000);
    const started = controlPlane.pids["kube-apiserver"];
    await away;
    assert.notEqual(await first, started, "the first one ended, because it found no etcd");
  });
});

/** Returns command lines of processes that contain `word`. */
function mentioning(word: string): string[] {
  const read = (pid: string) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
    } catch {
      return "";
    }
  };
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(read)
    .filter((line) => line.includes(word));
}
