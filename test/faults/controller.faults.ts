import { THE_OTHERS, testUnderFaults } from "./controller-cases.ts";

testUnderFaults(THE_OTHERS);
