import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import type { Grader } from "../../crds/trainingrun.ts";

export const grader: Grader = {
  ...{ metric: "MAE", idColumn: "id", targetColumns: ["y"], direction: "Lower", rewardFloor: -9 },
  rewardRange: { worst: 10, best: 0 },
};

/** Writes a task folder with two test rows and returns it; undefined instead of a text leaves the file out. */
export function writeTaskFolder(directory: string, changes: Record<string, string | undefined> = {}): string {
  const files: Record<string, string | undefined> = {
    "task.yaml": stringify({ name: "small", grader, executionTimeoutSeconds: 7 }),
    "prepared/public/description.md": "# Small\n",
    "prepared/public/train.csv": 'id,"a, b",y\n2,"x",1\n3,y,2\n',
    "prepared/public/test.csv": 'id,"a, b"\n0,x\n1,y\n',
    "prepared/public/sample_submission.csv": "id,y\n0,0\n1,0\n",
    "prepared/private/answers.csv": "id,y\n0,1\n1,2\n",
    ...changes,
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(directory, path, ".."), { recursive: true });
    if (text !== undefined) writeFileSync(join(directory, path), text);
  }
  return directory;
}
