/** What `longrun sft` shows: on a terminal a line that is overwritten for each step, elsewhere a line from time to time. */
import type { Sequence } from "../engine/index.ts";
import { type FineTuneSettings, type FineTuneStep, type HeldOut, stepsOf } from "../sft/fine-tune.ts";
import type { WorkFolder } from "../sft/work-folder.ts";

/** Without a terminal: seconds between two lines. */
const LINE_SECONDS = 30;
/** Steps whose mean loss is shown. */
const RECENT = 20;

interface Data {
  training: readonly Sequence[];
  heldOut: readonly Sequence[];
  tooLong: number;
  longest: number;
  repeated: number;
  maxTokens: number;
  settings: FineTuneSettings;
}

export class SftView {
  readonly #out: NodeJS.WriteStream;
  readonly #json: boolean;
  readonly #recent: FineTuneStep[] = [];
  #shownMs = 0;

  constructor(out: NodeJS.WriteStream, json: boolean) {
    this.#out = out;
    this.#json = json;
  }

  /** Shows what is trained on. */
  data(sources: readonly string[], data: Data): void {
    const { training, heldOut, tooLong, longest, repeated, maxTokens, settings } = data;
    const steps = stepsOf(training.length, settings);
    const responseTokens = training.reduce((total, { response }) => total + response.length, 0);
    const facts = {
      training: training.length,
      heldOut: heldOut.length,
      responseTokens,
      tooLong,
      longest,
      repeated,
      steps,
    };
    if (this.#json) {
      this.#object({ kind: "data", sources, ...facts });
      return;
    }
    for (const source of sources) this.#line(source);
    if (repeated > 0) this.#line(`left out: ${repeated} that an earlier example equals`);
    if (tooLong > 0) this.#line(`left out: ${tooLong} of more than ${maxTokens} tokens; the longest has ${longest}`);
    const each = `${settings.epochs} ${settings.epochs === 1 ? "epoch" : "epochs"} of ${steps / settings.epochs} steps of ${settings.batchSize} examples`;
    this.#line(
      `${training.length} to train on (${responseTokens} response tokens), ${heldOut.length} held out; ${each}`,
    );
  }

  plan(table: readonly string[]): void {
    if (this.#json) this.#object({ kind: "plan", table });
    else for (const line of table) this.#line(line);
  }

  step(step: FineTuneStep, steps: number): void {
    if (this.#json) {
      this.#object({ kind: "step", ...step });
      return;
    }
    this.#recent.push(step);
    if (this.#recent.length > RECENT) this.#recent.shift();
    const sum = (pick: (step: FineTuneStep) => number) => this.#recent.reduce((total, each) => total + pick(each), 0);
    const loss = sum((each) => each.loss * each.responseTokens) / sum((each) => each.responseTokens);
    const seconds = sum((each) => each.seconds);
    const left = Math.ceil((seconds / this.#recent.length) * (steps - step.step));
    const speed = `${Math.round(sum((each) => each.tokens) / seconds)} tokens/s, ${left} s left`;
    const text = `step ${step.step} of ${steps}  epoch ${step.epoch}  loss ${loss.toFixed(4)}  ${speed}`;
    if (this.#out.isTTY) this.#out.write(`\r\x1b[K${text}${step.step === steps ? "\n" : ""}`);
    else if (performance.now() - this.#shownMs > LINE_SECONDS * 1000 || step.step === steps) {
      this.#shownMs = performance.now();
      this.#line(text);
    }
  }

  heldOut(heldOut: HeldOut): void {
    if (this.#json) {
      this.#object({ kind: "heldOut", ...heldOut });
      return;
    }
    const { step, loss, accuracy } = heldOut;
    if (this.#out.isTTY && step > 0) this.#out.write("\r\x1b[K");
    this.#line(`after ${step} steps: held-out loss ${loss.toFixed(4)}, accuracy ${(100 * accuracy).toFixed(1)} %`);
  }

  /** Shows a note beside the lines: to stderr, so that stdout has the results alone. */
  note(text: string): void {
    process.stderr.write(`${this.#out.isTTY && !this.#json ? "\r\x1b[K" : ""}${text}\n`);
  }

  /** Shows where the model is and how to go on. */
  finished({ path, lines }: WorkFolder, isAdapter: boolean, model: string): void {
    const steps = lines.filter((line) => line.kind === "step");
    const [before, after] = [
      lines.find((line) => line.kind === "heldOut"),
      lines.findLast((line) => line.kind === "heldOut"),
    ];
    const facts = { steps: steps.length, loss: steps.at(-1)?.loss, before, after };
    if (this.#json) {
      this.#object({ kind: "finished", path, ...facts });
      return;
    }
    this.#line(`${path}: ${steps.length} steps, loss ${steps[0]?.loss.toFixed(4)} to ${steps.at(-1)?.loss.toFixed(4)}`);
    this.#line(
      isAdapter
        ? `longrun model merge --model ${model} --adapter ${path} --out FOLDER makes a model of it`
        : `longrun run --task TASK --model ${path} goes on with it`,
    );
  }

  #line(text: string): void {
    this.#out.write(`${text}\n`);
  }

  #object(value: unknown): void {
    this.#out.write(`${JSON.stringify(value)}\n`);
  }
}
