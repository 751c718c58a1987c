/** How GitOps tools judge an object: kstatus, the library of Flux, and Argo CD with the health check of the chart. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { findBinary, HEALTH, missingBinaries } from "./binaries.ts";

/** The health check for Argo CD. */
const LUA = fileURLToPath(new URL("../../charts/longrun/argocd/health.lua", import.meta.url));

export interface Judgement {
  status: string;
  message: string;
}

/** Returns one line if the program that judges is missing, or undefined. */
export const missingHealth = (): string | undefined => missingBinaries(HEALTH);

/** Returns the judgements about each object, in their order. @throws Error with what the program says */
export function judge(objects: readonly object[]): Promise<{ kstatus: Judgement; argo: Judgement }[]> {
  return new Promise((resolve, reject) => {
    const child = execFile(findBinary("gitops-health")!, [LUA], (error, stdout, stderr) => {
      if (error) reject(new Error(stderr || error.message));
      else
        resolve(
          stdout
            .trim()
            .split("\n")
            .map((line) => JSON.parse(line)),
        );
    });
    child.stdin!.end(objects.map((object) => `${JSON.stringify(object)}\n`).join(""));
  });
}
