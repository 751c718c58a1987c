/** Runs a few of the hostile programs at both levels, in seconds; `npm run test:abuse` runs all of them. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { ensurePythonEnvironment } from "../../actor/python-env.ts";
import { EXPECTATIONS } from "./expectations.ts";
import { Arena, COLUMNS, programsIn } from "./suite.ts";

/** One of each kind, without programs that wait for the clock. */
const QUICK = [
  ...[
    "read_answers",
    "read_supervisor",
    "other_slots",
    "search_stack",
    "write_outside",
    "harm_outside",
    "tamper_public",
  ],
  ...["poison_packages", "swap_scratch", "kill_everyone", "trace", "tcp", "udp", "unix_sockets", "control_socket"],
  ...["new_namespaces", "mount", "kernel_interfaces", "raw_machine_code", "system_calls_32_bit", "own_filters"],
  ...[
    "raise_own_limits",
    "regain_privileges",
    "eat_memory",
    "fill_temporary",
    "fill_deleted",
    "daemon",
    "print_forever",
  ],
  ...[
    "submission_symlink",
    "submission_hardlink",
    "submission_race",
    "break_runner",
    "forged_markers",
    "dug_out_nonce",
  ],
  ...[
    "take_back_output",
    "output_socket",
    "epoll_watches",
    "user_counters",
    "threads_with_own_descriptors",
    "record_locks",
  ],
  ...["hide_unreadable", "hide_in_mappings", "file_attributes", "tell_others", "proc_write", "proc_descriptors"],
  ...["system_calls_all", "requests", "inherited_state", "memory_left"],
  ...["leave_behind", "find_left", "open_many_files"],
];

test("Every hostile program has an expectation, and every expectation has a program", () => {
  assert.deepEqual(Object.keys(EXPECTATIONS).sort(), programsIn("."));
});

const environment = (await ensurePythonEnvironment()).directory;
for (const column of COLUMNS.filter(({ landlockAbi, sidecar }) => landlockAbi === undefined && !sidecar))
  describe(`hostile programs at ${column.name}`, { concurrency: false }, () => {
    let arena: Arena | string;
    before(async () => {
      arena = await Arena.open(column, { environment, warm: ["numpy", "pandas"] });
      // A machine may lack a level. A level that exists but leaks is a fault, and no reason to skip.
      if (typeof arena === "string") assert.doesNotMatch(arena, /can be (read|written|signalled|made)/);
    });
    after(async () => {
      if (typeof arena !== "string") await arena.close();
    });
    for (const name of QUICK)
      test(name, async (context) => {
        if (typeof arena === "string") return context.skip(arena);
        await arena.attack(name);
      });
  });
