/** Writes and reads a learner's request for a larger volume, which is part of its last message. */

const GIBIBYTE = 2 ** 30;
const REMEDY = /set learner\.storage\.size to (\d+Gi) or more/;

/** Returns a remedy that names a size, such as `set learner.storage.size to 290Gi or more`. */
export const volumeRemedy = (bytes: number): string =>
  `set learner.storage.size to ${Math.ceil(bytes / GIBIBYTE)}Gi or more`;

/** Returns the size in such a remedy; undefined if the text has none. */
export const volumeWanted = (text: string | undefined): string | undefined => REMEDY.exec(text ?? "")?.[1];
