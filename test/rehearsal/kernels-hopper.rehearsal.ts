import { testKernels } from "./kernel-cases.ts";

testKernels("9.0");
