import type { Duplex } from "node:stream";
import type { ControlGroup } from "./control-group.ts";

/** A zygote and the connection to it. */
export interface Zygote {
  readonly control: Duplex;
  /** Settles when the zygote has ended. */
  readonly ended: Promise<void>;
  /** Process id, if the actor started it; with namespaces the zygote is a child of this process. */
  readonly pid?: number;
  /** The slot's control group. Absent: it has none, or the container's group has the limits. */
  readonly group?: ControlGroup;
  /** Returns a text for people. */
  whyEnded(): string;
  /** Ends the zygote and all its processes. */
  end(): void;
  /** Removes the zygote's files; it must have ended. */
  cleanUp(): Promise<void>;
}
