/** What it says of the corpus and of the training. */
interface ReadmeFacts {
  tasks: string[];
  texts: number;
  distinctPrograms: number;
  /** Share of the programs that get a mistake. */
  mistakeShare: number;
  steps: number;
  batchSize: number;
  /** Nats a token at the end. */
  loss: number;
}

/** The README.md of a policy folder: what this model is and what it is not. */
export function readme(facts: ReadmeFacts): string {
  return `# Starting policy of the laptop quickstart

A language model of 1.05 million weights (Qwen2 architecture, float32) that writes short scikit-learn programs for the
bundled tasks ${facts.tasks.join(", ")}. It is the start of a reinforcement learning run that fits in minutes on two
cores, not a general model: it knows no English beyond its plans, no Python beyond its programs and no other task.

## How it was made

\`longrun pretrain\` trained it from random weights on texts that a generator wrote (learner/pretrain): ${facts.texts} solutions,
${facts.distinctPrograms} distinct programs, each a plan of three to five sentences and one program. The generator draws an encoding of
the columns, added features, one of a dozen model families with hyper-parameters, and what is printed. ${Math.round(100 * facts.mistakeShare)} % of the
programs get a mistake such as a wrong column, a forgotten import or a missing parenthesis. How often each choice is
drawn was set by hand: cheap and middling families are common, strong ones rarer, so that there is something to learn.
The generator reads no data, runs no program and knows no score, and what follows an improve prompt in the corpus is
mostly the shown solution with one choice drawn anew, better or worse. The best families, features and hyper-parameters
do occur in the corpus: reinforcement learning finds and combines them, it does not invent them. \`longrun report\` says
which share of a run's valid programs is not in the corpus verbatim.

Trained for ${facts.steps} steps of ${facts.batchSize} texts on the cross entropy of the response (${facts.loss} nats a token at the end).
The same seed and number of threads give the same bytes.

| file | content |
| --- | --- |
| config.json, model.safetensors, tokenizer.json, tokenizer_config.json, generation_config.json | the model as transformers loads it |
| corpus.json | settings and numbers of the corpus and the training |
| corpus.hashes | first 8 bytes of the SHA-256 of each distinct program, sorted |
`;
}
