/**
 * A sandbox container of a pod, as closely as a test can make one: `zygote.py --listen` is process 1 of a PID namespace, as another user
 * without capabilities, with its own directories. Without root it is a plain process.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

export const SUPERVISOR_ID = 10001;
export const SANDBOX_ID = 10002;
const CODE = fileURLToPath(new URL("sandbox", import.meta.url));
const ENTER = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--propagation", "private", "/bin/sh", "-ec"];
/**
 * Arguments: the environment, the interpreter's installation, the code, the shared and the scratch directory, a control group or nothing,
 * then the command. An installation in a user's home is made readable for other users.
 */
const SCRIPT = `
if [ -n "$6" ]; then echo 0 > "$6/cgroup.procs"; fi
mount -t tmpfs -o mode=0755 tmpfs /mnt
cd /mnt
mkdir python installation code sandbox scratch
mount --bind "$1" python
mount --bind "$2" installation
mount --bind "$3" code
mount --bind "$4" sandbox
mount --bind "$5" scratch
case "$2" in /usr*) ;; *)
  mount -t tmpfs -o mode=0755 tmpfs "/$(echo "$2" | cut -d/ -f2)"
  mkdir -p "$2"
  mount --bind installation "$2" ;;
esac
shift 6
exec setpriv --reuid ${SANDBOX_ID} --regid ${SANDBOX_ID} --groups ${SUPERVISOR_ID} --inh-caps=-all --bounding-set=-all \
  --no-new-privs /mnt/python/bin/python "$@"`;
const PROBE = "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'import numpy'])";

interface SidecarOptions {
  /** Directory of the Python environment. */
  environment: string;
  warm?: string[];
  /** A directory in a control group hierarchy. */
  controlGroup?: string;
  /** Folder of another sidecar in the same pod. Absent: a folder of its own. */
  sandboxes?: string;
  slot?: number;
}

export class Sidecar {
  /** Whether it has its own PID namespace, user and file system view. */
  readonly contained: boolean;
  readonly folder = mkdtempSync(join(tmpdir(), "lr-sidecar-"));
  /** The folder of slots that a supervisor is given. */
  readonly sandboxes: string;
  readonly shared: string;
  readonly socket: string;
  readonly scratch = join(this.folder, "scratch");
  /** Path of the socket for programs. */
  readonly socketInside: string;
  readonly #options: SidecarOptions;
  #process!: ChildProcess;
  log = "";

  constructor(options: SidecarOptions) {
    this.#options = options;
    this.sandboxes = options.sandboxes ?? join(this.folder, "sandboxes");
    this.shared = join(this.sandboxes, `slot-${options.slot ?? 0}`);
    this.socket = join(this.shared, "control.sock");
    for (const path of [this.shared, this.scratch]) {
      mkdirSync(path, { recursive: true });
      if (process.getuid!() === 0) chownSync(path, 0, SUPERVISOR_ID);
      chmodSync(path, 0o777); // like a subPath of an emptyDir with an fsGroup
    }
    chmodSync(this.folder, 0o755);
    this.contained = spawnSync(ENTER[0]!, this.#arguments("-c", PROBE)).status === 0;
    this.socketInside = this.contained ? "/mnt/sandbox/control.sock" : this.socket;
    this.start();
  }

  #arguments(...command: string[]): string[] {
    const { environment, controlGroup = "" } = this.#options;
    const installation = dirname(dirname(realpathSync(join(environment, "bin", "python"))));
    const directories = [environment, installation, CODE, this.shared, this.scratch];
    return [...ENTER.slice(1), SCRIPT, "sh", ...directories, controlGroup, ...command];
  }

  /** Starts it as the kubelet does, also after its end. */
  start(): void {
    const { environment, warm } = this.#options;
    const [code, scratch] = this.contained ? ["/mnt/code", "/mnt/scratch"] : [CODE, this.scratch];
    const listen = ["-s", "-B", `${code}/zygote.py`, "--listen", this.socketInside, "--scratch", scratch];
    if (warm) listen.push("--warm", warm.join(","));
    const [program, args] = this.contained
      ? [ENTER[0]!, this.#arguments(...listen)]
      : [join(environment, "bin", "python"), listen];
    const env = { PATH: process.env.PATH, OF_THE_CONTAINER: "1" };
    this.#process = spawn(program, args, { env, stdio: ["ignore", "inherit", "pipe"] });
    this.#process.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.log += text;
    });
  }

  /** Waits until it has imported its packages and listens. */
  async listening(): Promise<void> {
    for (let i = 0; !existsSync(this.socket); i++) {
      if (this.#process.exitCode !== null || i > 2400) throw new Error(`the zygote does not listen: ${this.log}`);
      await sleep(50);
    }
  }

  /** Process id of process 1. */
  get pid(): number {
    const outside = this.#process.pid!;
    if (!this.contained) return outside;
    return Number(readFileSync(`/proc/${outside}/task/${outside}/children`, "utf8").trim());
  }

  /** Sends process 1 a signal and waits for its end; kills it if it takes too long. Returns the seconds that it took. */
  async kill(signal: NodeJS.Signals): Promise<number> {
    const start = performance.now();
    const { pid } = this;
    const exit = once(this.#process, "exit");
    process.kill(pid, signal);
    const forced = setTimeout(() => process.kill(pid, "SIGKILL"), 10_000);
    await exit;
    clearTimeout(forced);
    return (performance.now() - start) / 1000;
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) await this.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}
