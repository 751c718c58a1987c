import { homedir } from "node:os";
import { join } from "node:path";

/** Folder of what longrun keeps from run to run: `$LONGRUN_CACHE`, `$XDG_CACHE_HOME/longrun` or `~/.cache/longrun`. */
export function cacheFolder({ LONGRUN_CACHE, XDG_CACHE_HOME }: NodeJS.ProcessEnv = process.env): string {
  return LONGRUN_CACHE || join(XDG_CACHE_HOME || join(homedir(), ".cache"), "longrun");
}
