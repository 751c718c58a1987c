import { IN_SHORT, testUnderFaults } from "./controller-cases.ts";

testUnderFaults(IN_SHORT);
