import { homedir } from "node:os";
import { join } from "node:path";

/** Returns the folder that longrun keeps between runs: `$LONGRUN_CACHE`, else `$XDG_CACHE_HOME/longrun`, else `~/.cache/longrun`. */
export function cacheFolder({ LONGRUN_CACHE, XDG_CACHE_HOME }: NodeJS.ProcessEnv = process.env): string {
  return LONGRUN_CACHE || join(XDG_CACHE_HOME || join(homedir(), ".cache"), "longrun");
}
