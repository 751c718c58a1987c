/** The expected result of each program in this folder, by isolation level. In addition, every program must leave the world
 * unchanged, print no line with BREACH, and leave no process and no file, and its sandbox must continue to work. */
import type { ExecutionResult } from "../../actor/execution.ts";
import type { Outcome } from "../../proto/execution.ts";
import type { IsolationLevel } from "../../proto/isolation.ts";
import { NONCE } from "./world.ts";

export interface Expectation {
  /** Absent: `completed`. */
  outcome?: Outcome | Outcome[];
  signal?: number[];
  /** Why its submission is refused. */
  refused?: RegExp;
  detail?: RegExp;
  /** The program prints `held` at its end. */
  held?: boolean;
  /** The program cannot be stopped here, and prints `open` at its end. The text is the consequence. */
  open?: string;
  /** The program runs twice in a row: the second run must find nothing of the first. */
  twice?: boolean;
  check?: (result: ExecutionResult) => boolean;
}

type Levels = Exclude<IsolationLevel, "none">;
type ByLevel = Expectation | Record<Levels, Expectation>;

const held: Expectation = { held: true };
const timedOut: Expectation = { outcome: "timedOut" };
/** A tmpfs has a size and reports when it is full; the watch counts directories several times a second. */
const tooMuchScratch: ByLevel = { namespaces: held, landlock: { outcome: "failed", detail: /more files or bytes/ } };

export const EXPECTATIONS: Record<string, ByLevel> = {
  // Programs that never end, or end too late.
  loop_forever: timedOut,
  sleep_forever: timedOut,
  ignore_signals: timedOut,
  endless_exit: timedOut,
  endless_finalizer: timedOut,
  close_everything: timedOut,
  vfork_hang: timedOut,
  regex_bomb: timedOut,
  constant_bomb: { outcome: ["timedOut", "outOfMemory"] },
  // Process 1 of its namespace cannot stop itself.
  stop_itself: { namespaces: held, landlock: timedOut },

  // At `namespaces`, memory that forks share with their parent counts in each.
  stopped_children: { namespaces: { outcome: ["timedOut", "outOfMemory"] }, landlock: timedOut },
  exec_for_ever: { outcome: ["timedOut", "failed", "outOfMemory"] },
  output_shut_down: timedOut,

  // Output.
  output_without_reader: { outcome: "outOfMemory" },
  output_socket: held,
  take_back_output: held,
  print_forever: { outcome: "outputLimit", check: (result) => result.terminalOutput.length < 20_000 },
  print_long_line: { outcome: "outputLimit", check: (result) => result.terminalOutput.length < 20_000 },
  print_control: { check: (result) => result.terminalOutput.includes(Buffer.from([0, 0xff, 0xfe, 0xc3])) },
  print_by_processes: { namespaces: { outcome: ["outputLimit", "outOfMemory"] }, landlock: { outcome: "outputLimit" } },
  print_line_feeds: { held: true, check: (result) => result.outputBytes === 1_000_005 },
  print_bytewise: { held: true, check: (result) => result.outputBytes === 200_006 },

  // Memory, processes, threads, files.
  eat_memory: { outcome: "outOfMemory" },
  eat_memory_stubborn: { outcome: ["outOfMemory", "timedOut"] },
  eat_memory_shared_out: { namespaces: { outcome: "outOfMemory" }, landlock: held },
  eat_memory_shared_mapping: { namespaces: { outcome: "outOfMemory" }, landlock: held },
  eat_memory_files: { namespaces: held, landlock: { outcome: ["completed", "failed"] } },
  // At `landlock` one process can only have just enough to fill the limit.
  eat_memory_sockets: {
    namespaces: { outcome: ["failed", "outOfMemory"], detail: /open files|memory/ },
    landlock: { outcome: ["completed", "outOfMemory"] },
  },
  // Connections that nobody has accepted have no descriptor.
  eat_memory_queue: { namespaces: { outcome: "outOfMemory" }, landlock: held },
  eat_memory_pages: held,
  own_rules: held,
  // Python itself needs a new mapping from time to time.
  many_mappings: {
    namespaces: { outcome: ["completed", "outOfMemory", "failed"] },
    landlock: { outcome: ["completed", "failed"] },
  },
  page_tables: { namespaces: { outcome: ["completed", "outOfMemory"] }, landlock: held },
  grow_in_processes: { namespaces: { outcome: "outOfMemory" }, landlock: held },
  epoll_watches: held,
  user_counters: held,
  threads_with_own_descriptors: held,
  record_locks: { outcome: "failed", detail: /more locks/ },
  locks_by_descriptor: held,
  eat_memory_huge_pages: held,
  raise_memory_error: { outcome: "outOfMemory" },
  // Memory that a fork shares with its parent counts in each, so it depends on chance which limit is reached first.
  fork_bomb: {
    namespaces: { outcome: ["timedOut", "failed", "outOfMemory"] },
    landlock: timedOut,
  },
  thread_bomb: { outcome: ["completed", "failed"] },
  // It depends on chance which limit is reached first, as with the fork bomb.
  zombies: { namespaces: { outcome: ["completed", "failed", "outOfMemory"] }, landlock: held },
  open_many_files: {
    namespaces: { outcome: ["failed", "outOfMemory"], detail: /open files|memory/ },
    landlock: held,
  },
  exhaust_async_io: held,
  daemon: held,
  clone_parent: held,
  hide_processor_time: { held: true, check: (result) => result.cpuSeconds > 0.3 },
  many_files: {
    namespaces: { outcome: "failed", detail: /OSError/ },
    landlock: { outcome: "failed", detail: /more files/ },
  },
  // At `landlock` the watch ends a program with too deep a tree, if it looks in time.
  deep_tree: { namespaces: held, landlock: { outcome: ["completed", "failed"] } },
  big_file: { namespaces: held, landlock: { outcome: ["completed", "failed"] } },
  fill_temporary: tooMuchScratch,
  fill_deleted: tooMuchScratch,
  fill_allocated: held,
  zip_bomb: tooMuchScratch,
  fill_at_once: tooMuchScratch,
  hide_unreadable: tooMuchScratch,
  hide_many_unreadable: tooMuchScratch,
  hide_in_mappings: tooMuchScratch,
  hide_in_flight: held,
  hide_in_wide_tree: tooMuchScratch,
  hide_by_renaming: tooMuchScratch,

  // Ends that the program causes.
  segfault: { outcome: "failed", signal: [11] },
  abort: { outcome: "failed", signal: [6, 11] },
  recurse: { outcome: ["failed", "outOfMemory", "timedOut"] },
  exit_zero: { check: (result) => result.submission === undefined },
  parser_bomb: { outcome: ["failed", "outOfMemory"] },
  program_with_nul: { outcome: "failed" },
  program_encoding: { outcome: "failed", detail: /SyntaxError/ },
  program_of_50_mb: { outcome: ["completed", "outOfMemory"] },
  break_runner: { outcome: "failed" },
  fill_report: { outcome: "failed", detail: /exit status 1/ },
  // The program chooses status 0, which earns nothing without a submission.
  finalizer_tricks: { check: ({ terminalOutput }) => terminalOutput.includes("held\n") },
  patch_runner: { outcome: ["completed", "failed"] },

  // The submission.
  no_submission: { check: (result) => result.submission === undefined && result.submissionRefused === undefined },
  submission_garbage: { check: (result) => result.submission?.length === 1024 },
  submission_pickle: { check: (result) => result.submission?.[0] === 0x80 },
  submission_symlink: { refused: /symbolic link/ },
  submission_fifo: held,
  submission_hardlink: { refused: /hard link/ },
  submission_directory: { refused: /directory/ },
  submission_sparse: { refused: /62914560 bytes/ },
  submission_device: held,
  submission_race: held,
  // Depends on the zygote's user: root can read it.
  submission_unreadable: {
    held: true,
    check: ({ submission, submissionRefused }) =>
      submission?.length === 0 || /Permission/.test(submissionRefused ?? ""),
  },
  submission_in_memory: {
    check: ({ submission, submissionRefused }) =>
      submission?.toString() === "id,target\n" || submissionRefused === "symbolic link",
  },
  submission_rewritten_later: { held: true, check: (result) => (result.submission?.length ?? 0) <= 20_000 },
  submission_random: { refused: /50331648 bytes, and 1048576 are allowed/ },

  // Reading.
  read_passwd: held,
  read_answers: held,
  read_supervisor: held,
  read_kernel: held,
  search_stack: held,
  other_slots: held,
  ask_for_names: {
    namespaces: held,
    landlock: {
      open: "programs can read names, sizes and times of files; a pod's sandbox has neither answers nor files of others",
    },
  },
  devices: held,
  proc_read: held,
  proc_uncover: held,
  proc_descriptors: held,
  sys_files: held,
  inherited_state: held,
  tell_others: held,

  // Writing.
  write_supervisor: held,
  write_outside: held,
  harm_outside: held,
  tamper_public: held,
  poison_packages: held,
  pip_install: held,
  preload: held,
  swap_scratch: held,
  strange_names: held,
  unremovable_files: held,
  lock_public_data: held,
  escape_by_settings: held,
  proc_write: held,
  file_attributes: held,
  unmount_input: held,

  // Other processes, the network, the kernel.
  trace: held,
  kill_everyone: held,
  signal_by_descriptor: held,
  change_others_limits: held,
  raise_own_limits: held,
  regain_privileges: held,
  process_options: held,
  own_filters: held,
  tcp: held,
  udp: held,
  unix_sockets: held,
  unix_names: held,
  unix_descriptors: held,
  control_socket: held,
  new_namespaces: held,
  mount: held,
  kernel_interfaces: held,
  privileged_calls: held,
  raw_machine_code: held,
  // SIGSYS; if the kernel has no 32-bit programs, the instruction itself faults.
  system_calls_32_bit: { outcome: "failed", signal: [31, 11] },
  system_calls_x32: held,
  change_clock: held,
  fake_clock: { held: true, check: (result) => result.durationSeconds >= 0.4 },
  terminal_input: held,
  exec_shell: held,
  system_calls_all: held,
  requests: held,

  // Markers.
  forged_markers: {
    check: ({ markers, forgedMarkers, imitatedMarkers }) =>
      markers.length === 0 && forgedMarkers === 7 && imitatedMarkers === 7,
  },
  dug_out_nonce: {
    check: ({ markers, forgedMarkers, terminalOutput }) =>
      markers.length === 1 && forgedMarkers === 1 && !/[0-9a-f]{32}/.test(terminalOutput.toString()),
  },
  print_nonce_apart: {
    check: ({ markers, terminalOutput }) => markers.length === 0 && !terminalOutput.toString().includes(NONCE),
  },
  marker_channel: {
    held: true,
    check: ({ markers, submission }) => markers.length === 0 && submission?.length === 0,
  },
  replay_nonce: { check: ({ markers, forgedMarkers }) => markers.length === 0 && forgedMarkers === 64 },

  // The next execution. (`guess_random` runs three times, each with its own seed.)
  guess_random: {},
  shared_memory_left: { held: true, twice: true },
  memory_left: { held: true, twice: true },
  import_hooks_left: { held: true, twice: true },
  leave_behind: held,
  find_left: held,
};

export function expectationOf(name: string, level: IsolationLevel): Expectation | undefined {
  const found = EXPECTATIONS[name];
  if (!found) return undefined;
  return "namespaces" in found ? found[level as Levels] : (found as Expectation);
}
