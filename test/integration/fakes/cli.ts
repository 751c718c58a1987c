/** `longrun` with fakes of the other parts' programs. */
import { main } from "../../../controller/cli.ts";
import { FAKES } from "./parts.ts";

process.exitCode = await main(process.argv, FAKES);
