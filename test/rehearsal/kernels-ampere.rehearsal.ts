/** The least shared memory of all GPUs that the PTX for 8.0 serves. */
import { testKernels } from "./kernel-cases.ts";

testKernels("8.6");
