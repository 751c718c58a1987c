/** Why a policy's text is not executed. Such a sample earns the failure reward (-10, paper section 4.1). */
export type SolutionFault = "noPlan" | "noCodeBlock" | "unclosedCodeBlock" | "emptyCodeBlock" | "severalCodeBlocks";

/** A parsed policy text: a plan with one program, or the reason why it is not executed. */
type ParsedSolution = { plan: string; program: string } | { fault: SolutionFault };

interface CodeBlock {
  /** Index of the opening fence's line. */
  line: number;
  code: string;
  closed: boolean;
}

/**
 * Parses `plan, then a single markdown code block` (Appendix C.1) from the policy's text. The plan is the text before the first block. The
 * first of several blocks is used if no other contains code. A text that the response limit cut off ends in an unclosed block.
 */
export function parseSolution(text: string): ParsedSolution {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const blocks = codeBlocks(lines);
  const first = blocks[0];
  if (first === undefined) return { fault: "noCodeBlock" };
  if (!first.closed) return { fault: "unclosedCodeBlock" };
  if (!holdsCode(first.code)) return { fault: "emptyCodeBlock" };
  if (blocks.slice(1).some((block) => holdsCode(block.code))) return { fault: "severalCodeBlocks" };
  const plan = lines.slice(0, first.line).join("\n").trim();
  if (!/\p{L}/u.test(plan)) return { fault: "noPlan" };
  return { plan, program: `${first.code}\n` };
}

/** Returns the text that `parseSolution` can read: the form of solutions in the corpus and in improve prompts. */
export function formatSolution(plan: string, program: string): string {
  return `${plan}\n\`\`\`python\n${program.replace(/\n+$/, "")}\n\`\`\``;
}

/** Returns the first closed code block with code, without its fences. */
export function firstCodeBlock(text: string): string | undefined {
  return codeBlocks(text.replaceAll("\r\n", "\n").split("\n")).find(({ code, closed }) => closed && holdsCode(code))
    ?.code;
}

/** Finds code blocks. Fences follow CommonMark: up to three spaces and three or more backticks, closed by at least as many alone. */
function codeBlocks(lines: string[]): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  for (let line = 0; line < lines.length; line++) {
    const opening = /^ {0,3}(`{3,})[^`]*$/.exec(lines[line]);
    if (opening === null) continue;
    const closing = new RegExp(`^ {0,3}\`{${opening[1].length},}\\s*$`);
    let end = line + 1;
    while (end < lines.length && !closing.test(lines[end])) end += 1;
    blocks.push({ line, code: lines.slice(line + 1, end).join("\n"), closed: end < lines.length });
    line = end;
  }
  return blocks;
}

/** Blank lines and `#` comments are not code. */
function holdsCode(code: string): boolean {
  return code.split("\n").some((line) => /^\s*[^\s#]/.test(line));
}
