/** The process of `kubectl longrun`; esbuild makes one file of it and of all that it imports (`bundle.ts`). */
import { endOnClosedPipe } from "../../proto/closed-pipe.ts";
import { main } from "./main.ts";

endOnClosedPipe();
main(process.argv).then((status) => {
  process.exitCode = status;
});
