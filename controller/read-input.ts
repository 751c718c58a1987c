import { readFileSync } from "node:fs";
import { describeFileError } from "../proto/errors.ts";
import { ControllerError } from "./errors.ts";

/** Returns the text of a file that the user named. @throws ControllerError `input`; its message begins with `what` */
export function readInput(path: string, what = ""): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new ControllerError("input", what + describeFileError(path, cause), { cause });
  }
}
