/** The arms of E7, all with the same warm start but `no warm start`. */

/** Arms with their settings. The first three are the main ones. */
export const ARMS = {
  RL: [],
  "learning rate 0": ["algorithm.learningRate=0"],
  "no warm start": [],
  "no partial credit": ["algorithm.markerReward=0"],
  "improve prompts": ["prompts.improveProbability=0.5"],
  "debug prompts": ["prompts.debugProbability=0.5"],
} as const satisfies Record<string, readonly string[]>;
export type Arm = keyof typeof ARMS;
export const MAIN: readonly Arm[] = ["RL", "learning rate 0", "no warm start"];
export const OTHERS: readonly Arm[] = ["no partial credit", "improve prompts", "debug prompts"];
