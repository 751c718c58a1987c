/** Why a submission has no score. A code is stable; its message names the column, row and value in one line. */

/** Details of a reason, depending on its code. Rows count from 1, without the header. */
interface ReasonFacts {
  column?: string;
  row?: number;
  value?: string | number;
  /** The actual and the expected value. */
  found?: string | number;
  expected?: string | number;
}

const reasonMessages = {
  valid: () => "valid",
  noSubmission: (f) => `no submission: ${text(f.found)} is not a file whose name ends with .csv`,
  submissionRefused: (f) => `submission refused: ${text(f.found)}`,
  fileTooLarge: (f) => `the file has ${f.found} bytes, more than the ${f.expected} that a submission can need`,
  notUtf8: () => "the file is not UTF-8 text",
  emptyFile: () => "the file is empty",
  unclosedQuote: (f) => `a quoted field that starts in row ${f.row} is never closed`,
  carriageReturn: (f) =>
    `row ${f.row} starts with a blank and the line before it ends with a carriage return alone, which pandas cannot read`,
  longRow: (f) => `row ${f.row} has ${f.found} fields, more than the ${f.expected} of the rows before it`,
  tooManyColumns: (f) =>
    f.row ? `row ${f.row} has more than ${f.expected} fields` : `the header has more than ${f.expected} columns`,
  answersUnusable: (f) => `the answers do not fit the task: ${text(f.found)}`,
  missingColumn: (f) =>
    `missing column ${text(f.column)}; the header ${f.value ? `has ${text(f.found)}, with ${f.value}` : `is ${text(f.found)}`}`,
  unexpectedColumn: (f) => `unexpected column ${text(f.column)}; the columns are exactly ${text(f.expected)}`,
  columnCount: (f) => `${f.found} columns, there should be exactly ${f.expected}`,
  noRows: () => "there is no row below the header",
  rowCount: (f) => `${f.found} rows, the test set has ${f.expected}`,
  idUnknown: (f) => `${text(f.column)} ${text(f.value)} in row ${f.row} is not in the test set`,
  idRepeated: (f) => `${text(f.column)} ${text(f.value)} in row ${f.row} occurs more often than in the test set`,
  idMissing: (f) => `${text(f.column)} is missing (NaN) in row ${f.row}`,
  answerIdMissing: (f) => `the answers have no ${text(f.column)} (NaN) in row ${f.row}, which no submission can match`,
  notNumeric: (f) => `${text(f.column)} in row ${f.row} is not a number: ${text(f.value)}`,
  mixedTypes: (f) => `${text(f.column)} is read as a mixture of types; write one type of value throughout`,
  missingValue: (f) => `${text(f.column)} is missing (NaN) in row ${f.row}`,
  infiniteValue: (f) => `${text(f.column)} in row ${f.row} is infinite`,
  notInteger: (f) => `${text(f.column)} in row ${f.row} is ${text(f.value)}; labels are whole numbers`,
  outOfRange: (f) => `${text(f.column)} in row ${f.row} is ${text(f.value)}, it has to be ${f.expected}`,
  rowSum: (f) => `the probabilities of row ${f.row} add up to ${f.value}, not to 1`,
  longText: (f) => `${text(f.column)} in row ${f.row} has ${f.found} characters, more than ${f.expected}`,
  noWords: (f) =>
    `${text(f.column)} has no word in row ${f.row}, and neither has the answer, so their overlap is undefined`,
  undefinedScore: (f) => `${f.expected} is not a finite number for these predictions`,
} satisfies Record<string, (facts: ReasonFacts) => string>;

type ReasonCode = keyof typeof reasonMessages;

export interface Reason {
  code: ReasonCode;
  message: string;
}

/** The reason for a missing score. It is a value: no submission makes a grader throw. */
export interface Refusal {
  reason: Reason;
}

export function refuse(code: ReasonCode, facts: ReasonFacts = {}): Refusal {
  return { reason: reasonOf(code, facts) };
}

export function reasonOf(code: ReasonCode, facts: ReasonFacts = {}): Reason {
  return { code, message: (reasonMessages[code] as (facts: ReasonFacts) => string)(facts) };
}

/** Returns a submission's text on one line, without control characters, cut if it is long. */
function text(value: string | number | undefined): string {
  const line = String(value).slice(0, 1000).replace(/\p{C}/gu, " ");
  return line.length > 80 ? `${line.slice(0, 77)}...` : line;
}
