/** Runs programs of the other architecture in QEMU, as a release's builder does. */
import { existsSync } from "node:fs";
import { missingTools } from "../tools.ts";

export type Architecture = "amd64" | "arm64";
export const HOST: Architecture = process.arch === "arm64" ? "arm64" : "amd64";

const INTERPRETER = "/usr/bin/qemu-aarch64-static";
/** The file in which the kernel lists an interpreter that the machine's owner registered, e.g. by `tonistiigi/binfmt`. */
const REGISTERED = { arm64: "/proc/sys/fs/binfmt_misc/qemu-aarch64", amd64: "/proc/sys/fs/binfmt_misc/qemu-x86_64" };
/** The kernel's `NAME:TYPE:OFFSET:MAGIC:MASK:INTERPRETER:FLAGS` (Documentation/admin-guide/binfmt-misc.rst): ELF, 64 bits, AArch64. */
const FORMAT = [
  ...["", "longrun-aarch64", "M", ""],
  "\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00",
  "\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff",
  ...[INTERPRETER, "F"],
].join(":");
/** The registration belongs to a mount of its own, so that it is gone with the command. */
const REGISTER = `mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf '%s' "$0" >/proc/sys/fs/binfmt_misc/register && exec "$@"`;

/** Returns one line that says why this machine cannot run `architecture`'s programs; undefined if it can. */
export function missingEmulation(architecture: Architecture): string | undefined {
  if (architecture === HOST || existsSync(REGISTERED[architecture])) return undefined;
  const how = `register one with binfmt_misc, or build on a machine of ${architecture}`;
  if (architecture === "amd64") return `this machine has no emulator of amd64: ${how}`;
  if (process.getuid?.() !== 0) return `an emulator of arm64 can be registered by root alone: run as root, ${how}`;
  const missing = missingTools(["qemu-aarch64-static"]);
  return missing && `an emulator of arm64 is ${missing}; or ${how}`;
}

/** Returns program and arguments that run a command in which `architecture`'s programs can run. @throws Error with the remedy */
export function running(architecture: Architecture, [file, ...args]: string[]): [file: string, args: string[]] {
  const missing = missingEmulation(architecture);
  if (missing) throw new Error(missing);
  if (architecture === HOST || existsSync(REGISTERED[architecture])) return [file!, args];
  return ["unshare", ["--mount", "sh", "-c", REGISTER, FORMAT, file!, ...args]];
}
