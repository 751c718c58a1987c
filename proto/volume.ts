/** How a learner asks for a larger volume in its last words, and how the controller reads the size from them. */

const GIBIBYTE = 2 ** 30;
const REMEDY = /set learner\.storage\.size to (\d+Gi) or more/;

/** Returns a remedy that names a size, such as `set learner.storage.size to 290Gi or more`. */
export const volumeRemedy = (bytes: number): string =>
  `set learner.storage.size to ${Math.ceil(bytes / GIBIBYTE)}Gi or more`;

/** Returns the size that such a remedy names; undefined where a text has none. */
export const volumeWanted = (text: string | undefined): string | undefined => REMEDY.exec(text ?? "")?.[1];
