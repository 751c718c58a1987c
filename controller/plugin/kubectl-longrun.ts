/** The process of `kubectl longrun`; esbuild makes one file of it and of all that it imports (`bundle.ts`). */
import { main } from "./main.ts";

main(process.argv).then((status) => {
  process.exitCode = status;
});
