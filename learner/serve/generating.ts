/** What of the engine a server uses. */
export interface GeneratedPart {
  response: Int32Array;
  logProbs: Float32Array;
  finished: boolean;
  ended: boolean;
}
export interface Generating {
  generate(
    prompts: Int32Array[],
    options: {
      seeds: number[];
      temperature: number;
      topP: number;
      maxNewTokens: number;
      streams?: boolean;
      signal?: AbortSignal;
    },
    listener?: (index: number, part: GeneratedPart) => void,
  ): Promise<unknown>;
  readonly failure: Error | undefined;
}
