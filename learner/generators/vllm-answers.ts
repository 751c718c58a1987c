/** Parses what a vLLM server answers. The server is foreign: it may have another version, or be another server. */
import { GeneratorError } from "./errors.ts";
import { areTokens, type Fields, ROUNDING } from "./protocol.ts";

export interface WrittenRow {
  readonly tokens: number[];
  /** One for each token; null: vLLM gave a probability of 0. */
  readonly logProbs: (number | null)[];
  readonly finish: "stop" | "length";
}

const failed = (message: string): never => {
  throw new GeneratorError("failed", message);
};

function fieldsOf(path: string, text: string): Fields {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return unexpected(path, text, "not JSON");
  }
  return Object(json) as Fields;
}

const unexpected = (path: string, text: string, expected: string) =>
  failed(
    `vLLM's answer to ${path} is ${JSON.stringify(text.slice(0, 200))}, ${expected}; check the address that --vllm gives`,
  );

/** Returns the names in the answer to `/v1/models`. @throws GeneratorError `failed` */
export function parseModels(path: string, text: string): string[] {
  const { data } = fieldsOf(path, text);
  const names = Array.isArray(data) ? data.map((each) => (Object(each) as Fields).id) : undefined;
  if (names?.every((name) => typeof name === "string")) return names;
  return unexpected(path, text, 'not {"data": [{"id": "NAME"}]}');
}

/** Returns the version in the answer to `/weight_info`. @throws GeneratorError `failed` */
export function parseWeightVersion(path: string, text: string): string {
  const { weight_version: version } = fieldsOf(path, text);
  return typeof version === "string" ? version : unexpected(path, text, 'not {"weight_version": "NAME"}');
}

/** Returns whether the answer reports success. @throws GeneratorError `failed` */
export const parseSuccess = (path: string, text: string): boolean => fieldsOf(path, text).success === true;

/** Returns the only row in the answer to `/v1/completions`. @throws GeneratorError `failed` */
export function parseRow(path: string, text: string): WrittenRow {
  const { choices } = fieldsOf(path, text);
  const { token_ids, logprobs, finish_reason } = Object(Array.isArray(choices) ? choices[0] : undefined) as Fields;
  if (!Array.isArray(token_ids) || token_ids.length === 0)
    return failed("vLLM's answer has no token_ids: this version does not know return_token_ids");
  if (!areTokens(token_ids)) return failed(`vLLM wrote a row with token_ids ${brief(token_ids)}, not whole numbers`);
  const { token_logprobs } = Object(logprobs) as Fields;
  const given: unknown[] = Array.isArray(token_logprobs) ? token_logprobs : [];
  if (given.length !== token_ids.length)
    return failed(`vLLM gave ${given.length} log-probs for ${token_ids.length} tokens`);
  const wrong = given.find((value) => value !== null && !(typeof value === "number" && value <= ROUNDING));
  if (wrong !== undefined) return failed(`vLLM wrote a row with log-prob ${brief(wrong)}, not a number of at most 0`);
  if (finish_reason !== "stop" && finish_reason !== "length")
    return failed(`vLLM ended a row with finish_reason ${brief(finish_reason)}`);
  return { tokens: token_ids, logProbs: given as (number | null)[], finish: finish_reason };
}

const brief = (value: unknown) => (JSON.stringify(value) ?? "missing").slice(0, 200);
