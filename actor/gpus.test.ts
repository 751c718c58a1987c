/**
 * Tests programs with made-up device files for GPUs: a program can open the files of its slot and send ioctls to them, and no others;
 * without GPUs the sandbox is unchanged. No real GPU was tested.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { execute } from "./execution.ts";
import { describeGpus, shareGpus } from "./gpus.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import { parseOptions } from "./options.ts";
import { ensurePythonEnvironment } from "./python-env.ts";
import { Sandbox, type SandboxOptions } from "./sandbox.ts";
import { Sidecar } from "./sidecar.fixture.ts";

const folder = mkdtempSync(join(tmpdir(), "lr-gpus-"));
chmodSync(folder, 0o755);
after(() => rmSync(folder, { recursive: true, force: true }));
const { directory: environment, python } = await ensurePythonEnvironment();

const FILES = ["nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1", "nvidia-uvm-tools", "nvidia-modeset"];
const UUIDS = ["GPU-1111-22", "GPU-3333-44"];
const devices = join(folder, "dev");
const noDevices = join(folder, "none");
const driver = join(folder, "driver");
for (const path of [devices, noDevices, driver]) mkdirSync(path);
// Device files like /dev/null: it discards writes and knows no ioctl.
const made = FILES.every((name) => spawnSync("mknod", ["-m", "666", join(devices, name), "c", "1", "3"]).status === 0);
for (const [minor, uuid] of UUIDS.entries()) {
  mkdirSync(join(driver, "gpus", `0000:0${minor}:00.0`), { recursive: true });
  const facts = `Model: \t\t Made up\nGPU UUID: \t ${uuid}\nBus Location: \t 0000:01:00.0\nDevice Minor: \t ${minor}\n`;
  writeFileSync(join(driver, "gpus", `0000:0${minor}:00.0`, "information"), facts);
}
const gpuPlaces = { directory: devices, driver };

const LOOK = `
import fcntl, json, os, resource
def tried(path):
    try: file = os.open(path, os.O_RDWR)
    except OSError as error: return error.strerror
    os.write(file, b"x")
    try: fcntl.ioctl(file, 0x4621)
    except OSError as error: return "opened; " + error.strerror
print(json.dumps({
    "files": {name: tried("PLACE/" + name) for name in NAMES}, "null": tried("/dev/null"), "kmsg": tried("/dev/kmsg"),
    "environment": dict(os.environ), "limits": {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")},
}))`;

/** Returns what a program sees in such a sandbox, or a text if this machine cannot make one. */
async function look(options: Partial<SandboxOptions> & { level: "namespaces" | "landlock" }, place = devices) {
  const { level } = options;
  const whole = { python, space: join(folder, "space"), inputs: {}, warm: [], startSeconds: 60, ...options };
  const sandbox = await Sandbox.start(whole as SandboxOptions & { level: typeof level }).catch(
    (error) => error.message,
  );
  if (typeof sandbox === "string") return sandbox;
  try {
    // At `namespaces` the devices are in /dev.
    const text = LOOK.replace("PLACE", level === "namespaces" ? "/dev" : place).replace("NAMES", JSON.stringify(FILES));
    const request = { task: "t", program: Buffer.from(text), nonce: "", limits: DEFAULT_LIMITS, seed: 0 };
    const result = await execute(sandbox, request);
    assert.equal(result.outcome, "completed", result.terminalOutput.toString());
    return { info: sandbox.info, ...JSON.parse(result.terminalOutput.toString()) };
  } finally {
    await sandbox.stop();
  }
}
const skipped = made ? undefined : "needs root, to make device files";

for (const level of ["namespaces", "landlock"] as const)
  describe(`programs at ${level}`, () => {
    const opened = "opened; Inappropriate ioctl for device";
    const denied = level === "namespaces" ? "No such file or directory" : "Permission denied";

    test("use the GPUs of their slot and no other device", async (context) => {
      if (skipped) return context.skip(skipped);
      const seen = await look({ level, gpus: [1], gpuPlaces });
      if (typeof seen === "string") return context.skip(seen);
      assert.deepEqual(seen.info.gpus, ["nvidia1"]);
      const own = ["nvidiactl", "nvidia-uvm", "nvidia1"];
      assert.deepEqual(
        seen.files,
        Object.fromEntries(FILES.map((name) => [name, own.includes(name) ? opened : denied])),
      );
      assert.equal(seen.kmsg, denied);
      if (seen.info.landlockAbi >= 5) assert.equal(seen.null, "opened; Permission denied");
      assert.equal(seen.environment.CUDA_VISIBLE_DEVICES, UUIDS[1]);
      assert.deepEqual(seen.limits.RLIMIT_AS, [-1, -1]);
    });

    test("without a GPU find everything as it was, whether the machine has one or not", async (context) => {
      if (skipped) return context.skip(skipped);
      const withDevices = await look({ level, gpuPlaces });
      if (typeof withDevices === "string") return context.skip(withDevices);
      const without = await look({ level, gpuPlaces: { directory: noDevices, driver: noDevices } });
      const before = await look({ level });
      for (const seen of [withDevices, without]) {
        assert.deepEqual(seen.files, Object.fromEntries(FILES.map((name) => [name, denied])));
        assert.deepEqual(seen.info.gpus, []);
        seen.limits.RLIMIT_AS = before.limits.RLIMIT_AS; // depends on the zygote's own memory
        seen.info.residentBytes = before.info.residentBytes;
        assert.deepEqual(seen, before);
      }
      assert.ok(before.limits.RLIMIT_AS[0] < 2 * DEFAULT_LIMITS.memoryBytes);
      assert.equal("CUDA_VISIBLE_DEVICES" in before.environment, false);
    });

    test("are ended when the watch sees that they take too much memory", async (context) => {
      if (skipped) return context.skip(skipped);
      const space = join(folder, "space");
      const options = { python, space, inputs: {}, warm: [], level, gpus: [0], gpuPlaces, startSeconds: 60 };
      const sandbox = await Sandbox.start(options).catch((error: Error) => error.message);
      if (typeof sandbox === "string") return context.skip(sandbox);
      const reserve = "import mmap\nkept = mmap.mmap(-1, 1 << 40, mmap.MAP_PRIVATE | 0x4000, mmap.PROT_READ)\n"; // as CUDA does
      const run = (program: string) => {
        const limits = { ...DEFAULT_LIMITS, timeoutSeconds: 20, memoryBytes: 64 << 20 };
        return execute(sandbox, { task: "t", program: Buffer.from(program), nonce: "", limits, seed: 0 });
      };
      const small = await run(`${reserve}print(len(kept))`);
      assert.equal(small.terminalOutput.toString(), `${2 ** 40}\n`);
      const large = await run(`${reserve}parts = []\nwhile True: parts.append(bytes(1 << 20))`);
      assert.deepEqual([large.outcome, large.detail], ["outOfMemory", "used more memory than allowed"]);
      await sandbox.stop();
    });

    test("are refused if their GPU is missing or not readable by everybody, and the message names the device file", async (context) => {
      if (skipped) return context.skip(skipped);
      assert.match(await look({ level, gpus: [0, 7], gpuPlaces }), /dev\/nvidia7 is not a device .* \(--gpus, spec/);
      chmodSync(join(devices, "nvidia0"), 0o600);
      assert.match(await look({ level, gpus: [0], gpuPlaces }), /dev\/nvidia0 is not a device that programs could/);
      chmodSync(join(devices, "nvidia0"), 0o666);
    });
  });

test("in a container programs use the GPUs that are there", async (context) => {
  if (skipped) return context.skip(skipped);
  const sidecar = new Sidecar({ environment, warm: [] });
  try {
    await sidecar.listening();
    const here = { python: undefined, space: undefined, socket: sidecar.socket, level: "landlock" as const };
    const seen = await look({ ...here, gpuPlaces } as never);
    if (typeof seen === "string") return context.skip(seen);
    assert.deepEqual(seen.info.gpus, ["nvidia0", "nvidia1"]);
    assert.equal(seen.files.nvidia1, "opened; Inappropriate ioctl for device");
    assert.equal(seen.files["nvidia-uvm-tools"], "Permission denied");
    assert.equal("CUDA_VISIBLE_DEVICES" in seen.environment, false);
    await sidecar.listening();
    const none = await look({ ...here, gpuPlaces: { directory: noDevices, driver } } as never);
    assert.deepEqual([none.info.gpus, none.files.nvidia1], [[], "Permission denied"]);
    assert.notDeepEqual(none.limits.RLIMIT_AS, [-1, -1]);
  } finally {
    await sidecar.stop();
  }
});

test("each device adds one rule for files and leaves the other rules unchanged", () => {
  const code = `
import sys; sys.path.insert(0, ${JSON.stringify(join(import.meta.dirname, "sandbox"))})
import landlock
def rules(devices, version=7):
    added = []
    landlock.syscall = lambda number, *arguments, what: added.append((number, *(a for a in arguments if isinstance(a, bytes)))) or 9
    landlock.os.close = lambda descriptor: None
    landlock.os.open = lambda path, flags: 9
    landlock.os.stat = lambda descriptor: type("found", (), {"st_mode": 0o020666})
    landlock.restrict(version, ["/usr", "/bin"], ["/dev/null"], devices)
    return added
none, two = rules([]), rules(["/dev/nvidiactl", "/dev/nvidia0"])
assert len(none) == 5 and two[:4] == none[:4] and two[-1] == none[-1] and len(two) == 7
print([int.from_bytes(rule[1][:8], "little") for rule in two[4:6]], [int.from_bytes(rules(["x"], 4)[4][1][:8], "little")])`;
  const { stdout, stderr } = spawnSync(python, ["-B", "-c", code], { encoding: "utf8" });
  // WRITE_FILE 2, READ_FILE 4, IOCTL_DEV 1 << 15, which kernels below ABI 5 lack.
  assert.equal(stdout.trim(), "[32774, 32774] [6]", stderr);
});

test("each slot gets GPUs of its own, or all slots share them", () => {
  const shares = (gpus: number[], count: number) =>
    Array.from({ length: count }, (_, slot) => shareGpus(gpus, slot, count));
  assert.deepEqual(shares([], 2), [[], []]);
  assert.deepEqual(shares([3], 2), [[3], [3]]);
  assert.deepEqual(shares([0, 1], 2), [[0], [1]]);
  assert.deepEqual(shares([0, 1, 2], 2), [[0], [1]]);
  assert.deepEqual(shares([0, 1, 2, 3], 2), [
    [0, 1],
    [2, 3],
  ]);
  assert.deepEqual(shares([0, 1], 3), [[0], [1], [0]]);
  assert.equal(describeGpus([[], []]), undefined);
  assert.match(describeGpus([["nvidia0"], ["nvidia1"]])!, /slot 0: nvidia0; slot 1: nvidia1; each slot's own;/);
  assert.match(describeGpus([["nvidia0"], ["nvidia0"]])!, /shared between slots/);
});

test("the command line takes numbers of GPUs, and none in a pod", () => {
  const common = ["--learner", "h:1", "--tls", "t", "--name", "n"];
  const machine = [...common, "--task-dir", "d", "--python", "p", "--scratch", "s"];
  assert.throws(() => parseOptions([...machine, "--gpus", "x"]), /--gpus: "x" is not a number or a range/);
  const pod = [...common, "--sandboxes", "s", "--inputs", "t=/t"];
  assert.throws(() => parseOptions([...pod, "--gpus", "0"]), /--gpus does not go with --sandboxes/);
});
