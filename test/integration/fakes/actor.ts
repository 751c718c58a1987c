/**
 * A fake of actor/main.ts for tests of the local backend: executes nothing, has a child of its own (as the real one has its zygote), and
 * fails as FAKE_ACTOR says.
 */
import { spawn } from "node:child_process";
import { parseArgs } from "node:util";

interface Behaviour {
  /** Exits with this status at once. */
  exitAtStart?: number;
  /** Exits with 0 after this many seconds, like an idle actor. */
  idleSeconds?: number;
  /** Ignores SIGTERM. */
  stubborn?: boolean;
}

const behaviour: Behaviour = JSON.parse(process.env.FAKE_ACTOR ?? "{}");
const { values } = parseArgs({
  options: {
    learner: { type: "string" },
    tls: { type: "string" },
    name: { type: "string" },
    slots: { type: "string" },
    "run-id": { type: "string" },
    "metrics-listen": { type: "string" },
    "task-dir": { type: "string" },
    python: { type: "string" },
    scratch: { type: "string" },
    cpus: { type: "string" },
    "allow-no-isolation": { type: "boolean" },
  },
});
const say = (msg: string): void => void process.stderr.write(`${JSON.stringify({ level: 30, msg })}\n`);
if (behaviour.exitAtStart !== undefined) {
  say("this machine can confine no program: neither namespaces nor Landlock");
  process.exit(behaviour.exitAtStart);
}
const zygote = spawn("sleep", ["1000"], { stdio: "ignore" });
const end = (status: number): never => {
  zygote.kill("SIGKILL");
  process.exit(status);
};
process.on("disconnect", () => end(1));
process.stderr.on("error", () => end(1)); // the parent ended before the line below was written
if (process.connected === false) end(1); // the parent ended before the listener was added
process.on("SIGTERM", () => (behaviour.stubborn ? undefined : end(0)));
if (behaviour.idleSeconds !== undefined) setTimeout(() => end(0), behaviour.idleSeconds * 1000);
setInterval(() => {}, 1000);
say(`${values.name} looks for ${values.learner}`);
