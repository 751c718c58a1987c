import type { Sequence } from "../engine/index.ts";
import { mean } from "../metrics/statistics.ts";
import { type CorpusText, defaultCorpus } from "./corpus.ts";
import { shapes } from "./shapes.ts";

/** Returns the facts about the policy's training data for corpus.json, independent of time and machine. */
export function corpusFacts(
  corpus: readonly CorpusText[],
  sequences: readonly Sequence[],
  settings: Record<"seed" | "vocabulary" | "batchSize" | "learningRate" | "threads", number>,
  trained: { loss: number; steps: number; tokens: number },
) {
  const round = (value: number | null, digits: number) => Number((value ?? Number.NaN).toFixed(digits));
  const promptTokens = (kind: CorpusText["kind"]) =>
    round(mean(sequences.filter((_, i) => corpus[i].kind === kind).map(({ prompt }) => prompt.length)), 1);
  return {
    seed: settings.seed,
    tasks: shapes.map(({ name }) => name),
    texts: corpus.length,
    distinctTexts: new Set(corpus.map(({ response }) => response)).size,
    distinctPrograms: new Set(corpus.map(({ program }) => program)).size,
    improveShare: defaultCorpus.improveShare,
    mistakeShare: defaultCorpus.mistakeShare,
    responseTokens: round(mean(sequences.map(({ response }) => response.length)), 1),
    scratchPromptTokens: promptTokens("scratch"),
    improvePromptTokens: promptTokens("improve"),
    vocabulary: settings.vocabulary,
    steps: trained.steps,
    batchSize: settings.batchSize,
    learningRate: settings.learningRate,
    threads: settings.threads,
    trainedTokens: trained.tokens,
    loss: round(trained.loss, 4),
  };
}

/** Returns a list in words: a, b and c. */
const listed = (names: readonly string[]): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

/** Returns the README.md of a policy folder: the model's purpose and limits. */
export function readme(facts: ReturnType<typeof corpusFacts>): string {
  return `# Starting policy of the laptop quickstart

This language model of 1.05 million weights (Qwen2 architecture, float32) writes short scikit-learn programs for the bundled tasks
${listed(facts.tasks)}. It knows no other English, Python or task.

\`longrun pretrain\` trained it from random weights for ${facts.steps} steps of ${facts.batchSize} texts on the cross entropy of the response (${facts.loss} nats a token at
the end). The same seed and number of threads give the same bytes.

A generator (\`learner/pretrain\`) drew the corpus: ${facts.texts} solutions with ${facts.distinctPrograms} distinct programs. It reads no data and knows no score. ${Math.round(100 * facts.mistakeShare)} % of
the programs have a mistake, such as a wrong column or a missing parenthesis. Strong families of models are rare in the corpus, but the best
occur. \`corpus.json\` has the settings and numbers of corpus and training, \`corpus.hashes\` the first 8 bytes of the SHA-256 of each distinct
program, sorted.

AutoTokenizer of transformers 5 gives the ids of \`tokenizer.json\`, because \`auto_map\` in \`tokenizer_config.json\` keeps it from taking Qwen2's
own pre-tokenizer. With \`trust_remote_code\` it also needs \`tokenization_policy.py\`, which \`longrun model fetch\` leaves out, as all code.
`;
}
