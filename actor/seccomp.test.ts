/** Interprets the assembled filter as the kernel does, for both machines, and compares the numbers of system calls with the C headers. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";

const ALLOW = -1;
const KILL = -2;
const EPERM = 1;
const ENOSYS = 38;
const OWN_PID = 4711;

interface Filters {
  numbers: Record<string, number>;
  /** Instructions: code, jump if true, jump if not, operand. */
  filters: Record<string, [number, number, number, number][]>;
}

const PYTHON = `
import json, struct, system_calls, seccomp
found = {}
for machine in ("x86_64", "aarch64"):
    filters = {}
    for name, decisions in (("everywhere", seccomp.everywhere()), ("alone", seccomp.alone()), ("everywhere with a GPU", seccomp.everywhere(True))):
        code = seccomp.assemble(decisions, machine).replace(struct.pack("<I", seccomp.OWN_PID), struct.pack("<I", ${OWN_PID}))
        filters[name] = list(struct.iter_unpack("<HBBI", code))
    found[machine] = {"numbers": system_calls.numbers_of(machine), "filters": filters}
print(json.dumps({"machines": found, "allowed": seccomp.ALLOWED, "refused": seccomp.REFUSED, "silent": seccomp.SILENTLY_REFUSED}))`;
const run = spawnSync("python3", ["-B", "-c", PYTHON], {
  cwd: fileURLToPath(new URL("./sandbox", import.meta.url)),
  encoding: "utf8",
});
assert.equal(run.status, 0, run.stderr);
const told = JSON.parse(run.stdout) as {
  machines: Record<string, Filters>;
  allowed: string[];
  refused: string[];
  silent: string[];
};
const ARCHITECTURES: Record<string, number> = { x86_64: 0xc000003e, aarch64: 0xc00000b7 };

/** Returns the filter's answer: ALLOW, KILL, or the number of the error (0: the call does nothing and reports success). */
function answer(code: Filters["filters"][string], architecture: number, number: number, args: number[] = []): number {
  let accumulator = 0;
  for (let at = 0; at < code.length; at++) {
    const [operation, jumpIfTrue, jumpIfNot, operand] = code[at]!;
    const jump = (holds: boolean) => {
      at += holds ? jumpIfTrue : jumpIfNot;
    };
    if (operation === 0x20)
      accumulator = operand === 0 ? number : operand === 4 ? architecture : (args[(operand - 16) / 8] ?? 0) >>> 0;
    else if (operation === 0x54) accumulator = (accumulator & operand) >>> 0;
    else if (operation === 0x05) at += operand;
    else if (operation === 0x15) jump(accumulator === operand);
    else if (operation === 0x35) jump(accumulator >= operand);
    else if (operation === 0x06)
      return operand === 0x7fff0000 ? ALLOW : operand >>> 0 === 0x80000000 ? KILL : operand & 0xffff;
    else assert.fail(`instruction ${operation}`);
  }
  assert.fail("no answer");
}

for (const [machine, { numbers, filters }] of Object.entries(told.machines)) {
  const architecture = ARCHITECTURES[machine]!;
  const ask = (level: string, name: string, ...args: number[]) => {
    assert.ok(name in numbers, `${machine} has no ${name}`);
    return answer(filters[level]!, architecture, numbers[name]!, args);
  };
  describe(`the filter of ${machine}`, () => {
    test("a system call whose number is on no list does not exist", () => {
      const listed = new Set([...told.allowed, ...told.refused, ...told.silent].map((name) => numbers[name]));
      for (const level of Object.keys(filters))
        for (let number = 0; number < 2000; number++)
          if (!listed.has(number))
            assert.equal(answer(filters[level]!, architecture, number), ENOSYS, `${level} ${number}`);
    });

    test("system calls are refused or ignored in the same way at every level", () => {
      for (const level of Object.keys(filters)) {
        for (const name of told.refused) if (name in numbers) assert.equal(ask(level, name), EPERM, name);
        for (const name of told.silent) assert.equal(ask(level, name), 0, name);
      }
    });

    test("the system calls that programs need are allowed", () => {
      for (const level of Object.keys(filters))
        for (const name of [
          "read",
          "write",
          "mmap",
          "brk",
          "futex",
          "exit_group",
          "getrandom",
          "clock_gettime",
          "unlinkat",
        ])
          assert.equal(ask(level, name, 1, 2, 3), ALLOW, name);
      for (const name of ["clone", "execve", "chmod", "kill", "truncate", "fallocate"].filter((it) => it in numbers))
        assert.equal(ask("everywhere", name, 0x11), ALLOW, name);
    });

    test("a system call of another architecture ends the program", () => {
      for (const other of [0x40000003, 0xc00000f3, 0x40000028])
        assert.equal(answer(filters.everywhere!, other, numbers.read!), KILL);
      if (machine === "x86_64") assert.equal(answer(filters.everywhere!, architecture, 0x40000000 | 1), ENOSYS);
    });

    test("threads share their descriptors, and processes get no namespaces", () => {
      const [THREAD, FILES, USER, VFORK] = [0x10000, 0x400, 0x10000000, 0x4000];
      assert.equal(ask("everywhere", "clone", THREAD | FILES), ALLOW);
      assert.equal(ask("everywhere", "clone", THREAD), EPERM);
      assert.equal(ask("everywhere", "clone", VFORK | 17), ALLOW);
      assert.equal(ask("everywhere", "clone", USER | 17), EPERM);
      assert.equal(ask("alone", "clone", THREAD | FILES), ALLOW);
      assert.equal(ask("alone", "clone", 17), EPERM);
      assert.equal(ask("alone", "clone", THREAD), EPERM);
      for (const level of Object.keys(filters)) {
        assert.equal(ask(level, "clone3", 0), ENOSYS);
        assert.equal(ask(level, "mmap", 0, 4096, 3, 0x40022), 12, "MAP_HUGETLB");
        assert.equal(ask(level, "close_range", 3, 9, 2), EPERM);
        assert.equal(ask(level, "close_range", 3, 9, 4), ALLOW);
        assert.equal(ask(level, "unshare", 0x400), EPERM);
      }
    });

    test("a program changes its own priority and nobody else's", () => {
      const [PROCESS, GROUP, USER] = [0, 1, 2];
      for (const level of Object.keys(filters)) {
        assert.equal(ask(level, "setpriority", PROCESS, 0, 5), ALLOW);
        for (const [which, who] of [
          [PROCESS, 1],
          [PROCESS, OWN_PID],
          [GROUP, 0],
          [USER, 0],
        ] as const)
          assert.equal(ask(level, "setpriority", which, who, 5), EPERM, `${which} ${who}`);
      }
    });

    test("a program that must stay alone sends signals to itself only", () => {
      for (const name of ["kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"]) {
        assert.equal(ask("alone", name, OWN_PID, 9), ALLOW, name);
        for (const pid of [OWN_PID + 1, 0, 1, -1, -OWN_PID]) assert.equal(ask("alone", name, pid, 9), EPERM, name);
        assert.equal(ask("everywhere", name, 2, 9), ALLOW);
      }
      assert.equal(ask("alone", "tkill", OWN_PID, 9), EPERM);
    });

    test("a lone program gets pairs of streams, which pass no descriptors, urgent bytes or peer identities", () => {
      for (const name of ["socket", "connect", "accept", "accept4", "bind", "listen", "setsockopt"])
        assert.equal(ask("alone", name, 1, 1), EPERM, name);
      assert.equal(ask("everywhere", "socket", 1, 1), ALLOW);
      assert.equal(ask("everywhere", "socket", 1, 0o2000001), ALLOW, "SOCK_CLOEXEC");
      for (const [family, kind] of [
        [1, 2],
        [1, 5],
        [2, 1],
        [10, 1],
        [16, 3],
      ] as const)
        assert.equal(ask("everywhere", "socket", family, kind), EPERM, `family ${family}, kind ${kind}`);
      for (const name of ["connect", "accept", "accept4", "bind", "listen"])
        assert.equal(ask("everywhere", name, 3), ALLOW, name);
      assert.equal(ask("everywhere", "setsockopt", 3, 1, 2), ALLOW, "SO_REUSEADDR");
      for (const [family, option] of [
        [1, 7],
        [1, 16],
        [6, 2],
      ] as const)
        assert.equal(ask("everywhere", "setsockopt", 3, family, option), EPERM, `option ${option}`);
      assert.equal(ask("alone", "socketpair", 1, 1), ALLOW);
      assert.equal(ask("alone", "socketpair", 1, 0o2000001), ALLOW, "SOCK_CLOEXEC");
      assert.equal(ask("alone", "socketpair", 1, 2), EPERM);
      assert.equal(ask("alone", "socketpair", 2, 1), EPERM);
      assert.equal(ask("alone", "sendto", 3, 0, 1, 0), ALLOW);
      assert.equal(ask("alone", "sendto", 3, 0, 1, 1), EPERM);
      assert.equal(ask("alone", "recvfrom", 3, 0, 1, 0x41), EPERM);
      assert.equal(ask("alone", "recvmsg", 3, 0, 1), EPERM);
      assert.equal(ask("alone", "getsockopt", 3, 1, 3), ALLOW);
      for (const option of [17, 59, 77]) assert.equal(ask("alone", "getsockopt", 3, 1, option), 92);
    });

    test("ioctl takes the requests on a short list; with a GPU it takes all but the harmful ones", () => {
      for (const request of [0x541b, 0x5401, 0x5413]) assert.equal(ask("everywhere", "ioctl", 3, request), ALLOW);
      for (const request of [0x5412, 0x40086602, 0x9409, 0x5460])
        assert.equal(ask("everywhere", "ioctl", 3, request), 25);
      for (const request of [0xc0104622, 0x30000001]) {
        assert.equal(ask("everywhere", "ioctl", 3, request), 25);
        assert.equal(ask("everywhere with a GPU", "ioctl", 3, request), ALLOW);
      }
      for (const request of [0x5412, 0x541c, 0x8901, 0x40086602, 0x401c5820])
        assert.equal(ask("everywhere with a GPU", "ioctl", 3, request), EPERM);
      for (const command of [0, 1, 2, 3, 4, 5, 6, 7, 1030]) assert.equal(ask("alone", "fcntl", 3, command), ALLOW);
      for (const command of [8, 10, 15, 36, 37, 38, 1024, 1026, 1031, 1033])
        assert.equal(ask("alone", "fcntl", 3, command), EPERM);
      for (const option of [15, 16]) assert.equal(ask("alone", "prctl", option), ALLOW);
      for (const option of [1, 4, 8, 22, 28, 35, 36, 38, 47, 59]) assert.equal(ask("alone", "prctl", option), EPERM);
      assert.equal(ask("alone", "prlimit64", 0, 7), ALLOW);
      assert.equal(ask("alone", "prlimit64", 1, 7), EPERM);
    });

    test("a lone program changes nothing of a file but its bytes: no truncation, space, mode or owner", () => {
      assert.equal(ask("alone", "openat", -100, 0, 0o1000), EPERM);
      assert.equal(ask("alone", "openat", -100, 0, 0o1001), ALLOW);
      assert.equal(ask("alone", "openat2", -100), ENOSYS);
      assert.equal(ask("alone", "fallocate", 3), 95);
      assert.equal(ask("alone", "truncate", 3), EPERM);
      for (const name of ["fchmod", "fchmodat", "fchmodat2", "utimensat"]) assert.equal(ask("alone", name), 0);
      for (const name of ["fchown", "fchownat", "setxattr", "fsetxattr", "setxattrat"])
        assert.equal(ask("alone", name), EPERM);
    });
  });
}

const HEADERS = {
  x86_64: { path: "/usr/include/x86_64-linux-gnu/asm/unistd_64.h", pattern: /#define __NR_(\w+) (\d+)$/gm },
  // The header names a number with 3264 if 64-bit machines differ from others.
  aarch64: { path: "/usr/include/asm-generic/unistd.h", pattern: /#define __NR(?:3264)?_(\w+) (\d+)$/gm },
};
/** Names in the generic header that differ from the list's, and names that only 32-bit machines have. */
const RENAMED: Record<string, string> = { fstatat: "newfstatat" };
const NO_CALLS = /_time64$|64$|^(syscalls|arch_specific_syscall|sync_file_range2)$/;

for (const [machine, { path, pattern }] of Object.entries(HEADERS))
  test(`the system call numbers of ${machine} equal those of the C headers`, (context) => {
    if (!existsSync(path)) return context.skip(`${path} is not installed (linux-libc-dev)`);
    const { numbers } = told.machines[machine]!;
    const found = [...readFileSync(path, "utf8").matchAll(pattern)];
    assert.ok(found.length > 250, `${found.length}`);
    for (const [, name, number] of found) {
      const known = RENAMED[name!] ?? name!;
      if (known in numbers || !NO_CALLS.test(known)) assert.equal(numbers[known], Number(number), known);
    }
  });
