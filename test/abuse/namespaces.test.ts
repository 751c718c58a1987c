import { runSuite } from "./suite.ts";

runSuite({ name: "namespaces", level: "namespaces" });
