/** Kernels with no or an old Landlock: what it would hold is then held by namespaces or seccomp. */
import { MASKED, runSuite } from "./suite.ts";

runSuite({ name: "namespaces without Landlock", level: "namespaces", landlockAbi: 0, only: MASKED });
runSuite({ name: "landlock, ABI 1", level: "landlock", landlockAbi: 1, only: MASKED });
runSuite({ name: "landlock, ABI 4", level: "landlock", landlockAbi: 4, only: MASKED });
