/**
 * The external programs that tests start, with their Debian packages. A lane looks for its programs before it starts anything
 * (`lane-tools.ts`), so that a missing program is one line with the remedy, and never a failed test.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

const PACKAGES = {
  bash: "bash",
  buildah: "buildah",
  cc: "gcc",
  conntrack: "conntrack",
  containerd: "containerd",
  ctr: "containerd",
  debootstrap: "debootstrap",
  git: "git",
  ip: "iproute2",
  iptables: "iptables",
  "libfaketimeMT.so.1": "libfaketime",
  mount: "mount",
  nsenter: "util-linux",
  prlimit: "util-linux",
  ptp: "containernetworking-plugins",
  python3: "python3-venv",
  "qemu-aarch64-static": "qemu-user-static",
  runc: "runc",
  setpriv: "util-linux",
  ss: "iproute2",
  tar: "tar",
  unshare: "util-linux",
} as const;
export type Tool = keyof typeof PACKAGES;
export const TOOLS = Object.keys(PACKAGES) as Tool[];

/** Folders of the files that are not found by PATH. */
const FOLDERS: Partial<Record<string, string>> = {
  "libfaketimeMT.so.1": "/usr/lib/x86_64-linux-gnu/faketime",
  ptp: "/usr/lib/cni:/opt/cni/bin",
  // The kernel is told this path.
  "qemu-aarch64-static": "/usr/bin",
};
/** Debian has modules of Python that a virtual environment needs in a package of their own. */
const NEEDS_VENV = ["-c", "import venv, ensurepip"];

/** Returns the path of a program or file, or undefined. */
export function findTool(name: string, path = process.env.PATH ?? ""): string | undefined {
  const folders = (FOLDERS[name] ?? path).split(delimiter).filter((folder) => folder !== "");
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
}

/** Returns the Debian packages of the tools that are missing. */
export function missingPackages(names: readonly Tool[], path?: string): string[] {
  return [...new Set(missing(names, path).map((name) => PACKAGES[name]))];
}

/** Returns one line that names the tools that are missing, with the remedy; undefined if there are all. */
export function missingTools(names: readonly Tool[], path?: string): string | undefined {
  const lacking = missing(names, path);
  if (lacking.length === 0) return undefined;
  const packages = missingPackages(lacking, path).join(" ");
  return `not installed: ${lacking.join(", ")} (apt-get install -y --no-install-recommends ${packages})`;
}

function missing(names: readonly Tool[], path?: string): Tool[] {
  return names.filter((name) => {
    const found = findTool(name, path);
    return found === undefined || (name === "python3" && spawnSync(found, NEEDS_VENV).status !== 0);
  });
}
