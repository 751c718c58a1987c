/** `error`: no run can use the folder, or its scores would be meaningless. `warning`: a run can use it, but its user should know. */
export interface Finding {
  severity: "error" | "warning";
  problem: string;
  remedy: string;
}

export const error = (problem: string, remedy: string): Finding => ({ severity: "error", problem, remedy });
export const warning = (problem: string, remedy: string): Finding => ({ severity: "warning", problem, remedy });
