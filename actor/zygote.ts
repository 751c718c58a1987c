import type { Duplex } from "node:stream";
import type { ControlGroup } from "./control-group.ts";

/** A zygote and the way to it. */
export interface Zygote {
  readonly control: Duplex;
  /** Settles when it is gone. */
  readonly ended: Promise<void>;
  /** Of our own one's process; with namespaces the zygote is its child. */
  readonly pid?: number;
  /** Where the kernel holds what programs use; absent: it does not, or in a container's group. */
  readonly group?: ControlGroup;
  /** For a person. */
  whyEnded(): string;
  /** Ends it with everything in it. */
  end(): void;
  /** Once it is gone, what it left on our disk. */
  cleanUp(): Promise<void>;
}
