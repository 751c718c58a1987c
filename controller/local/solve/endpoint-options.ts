/** The options of `longrun solve` that describe an endpoint. */
import { isIP } from "node:net";
import { ENDPOINT_KEY, type EndpointSettings } from "../../../proto/solve.ts";
import { ControllerError } from "../../errors.ts";
import { wholeNumber } from "../evaluation/evaluation-plan.ts";
import type { SolveOptions } from "../options.ts";

type EndpointOptions = Pick<SolveOptions, "endpoint" | "modelName" | "concurrency" | "prices" | "body">;

const MOST_REQUESTS = 4096;
/** Requests side by side for a slot: solutions are written while programs run. */
const REQUESTS_PER_SLOT = 2;

const input = (message: string) => new ControllerError("input", message);

/** Refuses options that have a meaning for an endpoint alone. */
export function refuseEndpointOptions({ modelName, concurrency, prices, body }: EndpointOptions): void {
  const given = { "--model-name": modelName, "--concurrency": concurrency, "--prices": prices, "--body": body[0] };
  for (const [option, value] of Object.entries(given))
    if (value !== undefined) throw input(`${option} ${value}: is for an --endpoint; leave it out`);
}

/** @throws ControllerError `input`; no message has the key */
export function endpointOf(options: EndpointOptions, slots: number, env: NodeJS.ProcessEnv): EndpointSettings {
  const { endpoint = "", modelName, concurrency, prices, body } = options;
  if (!modelName) throw input(`--endpoint ${endpoint}: which model? give --model-name NAME`);
  const requests =
    concurrency === undefined
      ? Math.min(REQUESTS_PER_SLOT * slots, MOST_REQUESTS)
      : wholeNumber("--concurrency", concurrency, 1, MOST_REQUESTS);
  return {
    url: urlOf(endpoint, hasKey(env)),
    model: modelName,
    concurrency: requests,
    ...(prices !== undefined && { prices: pricesOf(prices) }),
    body: Object.fromEntries(body.map(fieldOf)),
  };
}

function hasKey({ [ENDPOINT_KEY]: key = "" }: NodeJS.ProcessEnv): boolean {
  if (/[^\t\x20-\x7e\x80-\xff]/.test(key))
    throw input(`${ENDPOINT_KEY} has a character that no HTTP header may have, such as a line break; set it anew`);
  return key !== "";
}

/** Names of parameters that hold a key, such as api-key, subscription-key, code or sig; api-version is none. */
const SECRET = /key|token|secret|password|^(code|sig|auth)/i;

function urlOf(text: string, isSecret: boolean): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol))
    throw input(`--endpoint ${text}: give an address such as https://api.example.com/v1`);
  if (url.username !== "" || url.password !== "")
    throw input(`--endpoint: the address has a user or a password; leave them out, and set ${ENDPOINT_KEY} to the key`);
  const secret = [...url.searchParams.keys()].find((name) => SECRET.test(name));
  if (secret !== undefined)
    throw input(
      `--endpoint: the parameter ${secret} of the address would stand in the folder and in logs; leave it out, and set ${ENDPOINT_KEY} to the key`,
    );
  if (/\/chat\/completions\/?$/.test(url.pathname))
    throw input(`--endpoint ${text}: leave out /chat/completions, which is added`);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const isHere = host === "localhost" || (isIP(host) !== 0 && /^(127\.|::1$)/.test(host));
  if (isSecret && url.protocol === "http:" && !isHere)
    throw input(
      `--endpoint ${text}: the key would cross the network unencrypted; give an https address, or unset ${ENDPOINT_KEY}`,
    );
  return url.href;
}

function pricesOf(text: string): { input: number; output: number } {
  const numbers = text.split(",").map((part) => (part.trim() === "" ? Number.NaN : Number(part)));
  const [inputPrice = Number.NaN, output = Number.NaN, ...more] = numbers;
  if (!(inputPrice >= 0 && output >= 0 && more.length === 0))
    throw input(
      `--prices ${text}: give two numbers, US dollars for a million tokens of prompts and of answers, e.g. 2.5,10`,
    );
  return { input: inputPrice, output };
}

/** Fields that the search itself decides. */
const OWN = ["messages", "model", "stream", "n"];

function fieldOf(text: string): [string, unknown] {
  const [, name, value] = /^(\w+)=([\s\S]+)$/.exec(text) ?? [];
  if (name === undefined) throw input(`--body ${text}: give FIELD=JSON, such as max_completion_tokens=4096`);
  if (OWN.includes(name)) throw input(`--body ${text}: ${name} is the search's own; leave it out`);
  try {
    return [name, JSON.parse(value!)];
  } catch {
    throw input(`--body ${text}: the value is no JSON; a text needs quotes: '${name}="${value}"'`);
  }
}
