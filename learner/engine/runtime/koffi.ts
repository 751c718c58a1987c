/** Koffi calls functions of native libraries. */
import { createRequire } from "node:module";

/** The size of the stack that koffi gives native code; a thread of Node.js has one of the same size. */
const STACK_BYTES = 8 * 2 ** 20;

/** Returns koffi, which is configured once in a process, before the first library. Throws if it is not installed. */
export function koffi(requireModule: (name: string) => unknown = createRequire(import.meta.url)) {
  const module = requireModule("koffi") as typeof import("koffi");
  if (module.config().sync_stack_size !== STACK_BYTES) module.config({ sync_stack_size: STACK_BYTES });
  return module;
}
