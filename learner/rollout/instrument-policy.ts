import type { TrainingRunSpec } from "../../crds/trainingrun.ts";
import type { Message } from "../engine/index.ts";
import { RolloutError } from "./errors.ts";
import { type Instrumented, type Instrumenter, instrument, NONCE_PLACEHOLDER } from "./instrument.ts";
import { type AnswerFault, readAnswer } from "./instrument-answer.ts";
import type { EncodeChat } from "./prompts.ts";
import { mapInTurns } from "./turns.ts";

/** Why the static policy did not instrument a program. */
export type StaticPolicyFault = AnswerFault | "promptTooLong" | "cutOff";

/** Faults that are no refusal of an answer: it was incomplete, or has no marker. */
const NOT_REFUSED: readonly StaticPolicyFault[] = ["promptTooLong", "cutOff", "noMarkers"];

/** A frozen copy of the starting policy (paper, section 3.2), with its own limits. */
export interface StaticPolicy {
  /** Returns greedy answers, one for each prompt, in order. */
  generate(prompts: Int32Array[], maxNewTokens: number): Promise<{ response: Int32Array; finished: boolean }[]>;
  encode: EncodeChat;
  decode: (tokens: Int32Array) => string;
  maxPromptTokens: number;
  maxResponseTokens: number;
}

interface InstrumentedByPolicy extends Instrumented {
  /** Why `Syntax` or nothing inserted the markers instead of the static policy. */
  fault?: StaticPolicyFault;
}

/** @throws RolloutError `instrumenter` if a prompt with its answer could exceed the model's positions */
export function checkInstrumenter(
  model: Pick<TrainingRunSpec["model"], `instrumenter${"" | "MaxPromptTokens" | "MaxResponseTokens"}`>,
  maxPositions: number,
): void {
  const { instrumenterMaxPromptTokens: prompt, instrumenterMaxResponseTokens: response } = model;
  if (model.instrumenter !== "StaticPolicy" || prompt + response <= maxPositions) return;
  throw new RolloutError(
    "instrumenter",
    `model.instrumenterMaxPromptTokens and model.instrumenterMaxResponseTokens are ${prompt} + ${response} tokens, but ` +
      `model.policy has ${maxPositions} positions (max_position_embeddings): lower them, or set model.instrumenter to Syntax`,
  );
}

/** Returns the limits for a program to be instrumented and for the answer. */
export const instrumenterLengths = (
  model: Pick<TrainingRunSpec["model"], `instrumenterMax${"Prompt" | "Response"}Tokens`>,
): { promptTokens: number; responseTokens: number } => ({
  promptTokens: model.instrumenterMaxPromptTokens,
  responseTokens: model.instrumenterMaxResponseTokens,
});

/** Returns the prompt of Appendix C.3. */
export function instrumentMessages(program: string): Message[] {
  // a fence that does not occur in the program
  const longest = Math.max(2, ...[...program.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  const content = `Please insert print statements in the given python script. The print statements are supposed to \
reflect the progress of executing a script that solves a Kaggle challenge machine learning benchmark. These print \
statements will be used to debug the python script so it needs to capture the progress of execution.

Print Statements:
- print("imported packages")
- print("loaded data")
- print("defined model")
- print("training loss:")
- print("trained model")
- print("testing loss:")
- print("predicted test labels")

Requirements:
- Only insert print statement AFTER an operation is actually performed (e.g., data have actually been loaded).
- Insert print statements for "training loss:" and "testing loss:" if applicable (i.e., the code actually computes \
training or testing losses).
- Output the entire python script after inserting print statements in a single markdown code block (wrapped in ${fence}).
- Do not modify the original python code, other than inserting print statements.

Now please insert print statements for this python script:

${fence}python
${program.replace(/\n+$/, "")}
${fence}`;
  return [{ role: "user", content }];
}

/**
 * Inserts markers into each program with `instrumenter`. If the static policy exceeds its limits or changes the program, the rules of
 * `Syntax` insert them. If these cannot either, the program stays unchanged.
 */
export async function instrumentAll(
  programs: readonly string[],
  instrumenter: Instrumenter,
  policy: StaticPolicy,
): Promise<InstrumentedByPolicy[]> {
  if (instrumenter !== "StaticPolicy") return mapInTurns(programs, (program) => instrument(program, instrumenter));
  const prompts = await mapInTurns(programs, (program) => policy.encode(instrumentMessages(program)));
  // a program that contains the placeholder is never instrumented
  const asked = programs
    .map((_, index) => index)
    .filter((i) => prompts[i].length <= policy.maxPromptTokens && !programs[i].includes(NONCE_PLACEHOLDER));
  const shown = asked.map((i) => prompts[i]);
  const answers = shown.length > 0 ? await policy.generate(shown, policy.maxResponseTokens) : [];
  return mapInTurns(programs, (program, index): InstrumentedByPolicy => {
    if (program.includes(NONCE_PLACEHOLDER)) return instrument(program, "None");
    const answer = answers[asked.indexOf(index)];
    if (answer === undefined) return fallBack(program, "promptTooLong");
    const read = readAnswer(program, policy.decode(answer.response));
    if (!("fault" in read)) return { ...read, instrumenter: "StaticPolicy", verificationFailures: 0 };
    const cutOff = read.fault === "noCodeBlock" && !answer.finished;
    return fallBack(program, cutOff ? "cutOff" : read.fault);
  });
}

function fallBack(program: string, fault: StaticPolicyFault): InstrumentedByPolicy {
  const instrumented = instrument(program, "Syntax");
  const refused = NOT_REFUSED.includes(fault) ? 0 : 1;
  return { ...instrumented, fault, verificationFailures: instrumented.verificationFailures + refused };
}
