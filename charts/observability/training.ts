/** The dashboard of one run: does it learn, and does it make progress? */
import type { Dashboard } from "./grafana.ts";
import { PROCESS } from "./training-process.ts";
import { RESULTS } from "./training-results.ts";

export const TRAINING: Dashboard = {
  uid: "longrun-training",
  title: "longrun / Training",
  description: "One TrainingRun: scores, outcomes of programs, and time.",
  from: "now-6h",
  variables: [
    { name: "namespace", label: "Namespace", query: "label_values(longrun_iteration, namespace)" },
    { name: "run", label: "Run", query: "label_values(longrun_iteration{@}, run)" },
  ],
  rows: [...RESULTS, ...PROCESS],
};
