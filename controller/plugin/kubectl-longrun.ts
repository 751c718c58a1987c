/** The process of `kubectl longrun`. esbuild bundles it with all imports into one file (`bundle.ts`). */
import { endOnClosedPipe } from "../../proto/closed-pipe.ts";
import { main } from "./main.ts";

endOnClosedPipe();
main(process.argv).then((status) => {
  process.exitCode = status;
});
