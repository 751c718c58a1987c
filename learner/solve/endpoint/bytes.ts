/**
 * Texts as tokens where the tokenizer is unknown: a token is a byte of UTF-8. A prompt is the JSON of its messages, so that the store has
 * exactly what was asked, and `model.maxPromptTokens` counts bytes.
 */
import type { Message } from "../../engine/index.ts";

const bytesOf = (text: string): Int32Array => Int32Array.from(Buffer.from(text));

export const encodeMessages = (messages: Message[]): Int32Array => bytesOf(JSON.stringify(messages));
export const decodeMessages = (tokens: Int32Array): Message[] => JSON.parse(decodeText(tokens)) as Message[];

export const encodeText = bytesOf;
export const decodeText = (tokens: Int32Array): string => Buffer.from(Uint8Array.from(tokens)).toString();
