/** Examples that `longrun COMMAND --help` shows below the options. Each line can be typed as it stands. */
export const EXAMPLES: Record<string, readonly string[]> = {
  run: [
    "longrun run manifests/quickstart/trainingrun.yaml",
    "longrun run manifests/quickstart/trainingrun.yaml --out runs/short --set stopping.iterations=2",
    "longrun run --task ./mytask --out runs/mine",
    "longrun run --task diamonds --task movie --task wage",
    "longrun run --resume runs/short",
    "longrun run run.yaml --generators https://gpu-1.example.com:8443 --generators-tls certificates/learner",
  ],
  evaluate: [
    "longrun evaluate --run runs/short",
    "longrun evaluate --model quickstart --task diamonds --samples 32",
    "longrun evaluate --table runs/short --csv",
  ],
  controller: ["longrun controller --image learner:1 --actor-image actor:1 --sandbox-image sandbox:1 --namespace team"],
  "smoke-test": ["longrun smoke-test manifests/quickstart/trainingrun.yaml --timeout 600"],
  "release-runs": ["longrun release-runs --namespace team"],
  exec: ["longrun exec --task diamonds program.py", "longrun exec --task ./mytask program.py --json"],
  best: ["longrun best runs/short", "longrun best runs/several --task wage"],
  samples: ["longrun samples runs/short --failed", "longrun samples runs/short --show s000001"],
  validate: [
    "longrun validate manifests/quickstart/trainingrun.yaml",
    "longrun validate new.yaml --cluster --replaces old.yaml",
  ],
  debug: ["longrun debug runs/short", "longrun debug team/quickstart --out bundle.tar.gz"],
  prepare: ["longrun prepare diamonds", "longrun prepare diamonds movie wage"],
  completion: [
    "source <(longrun completion bash)",
    "longrun completion zsh > ~/.zfunc/_longrun",
    "longrun completion fish > ~/.config/fish/completions/longrun.fish",
  ],
  grade: [
    "longrun grade --task diamonds --answers answers.csv --submission submission.csv",
    "longrun grade --batch submissions.jsonl",
    "longrun grade --task diamonds --submission submission.csv",
  ],
  task: [
    "longrun task init ./mytask --from table.csv --target price --metric RMSE",
    "longrun task check diamonds",
    "longrun task prompt ./mytask --model quickstart",
  ],
  report: ["longrun report runs/short"],
  results: [
    "longrun results push runs/short s3://results/team/short",
    "longrun results pull s3://results/team/short --out back",
  ],
  sft: [
    "longrun sft --model quickstart --data corpus.jsonl --out models/warm",
    "longrun sft --model quickstart --data runs/short --best 8 --rank 16 --out adapters/best",
  ],
  pretrain: [
    "longrun pretrain --out policies/mine --seed 1",
    "longrun pretrain --export-corpus corpus.jsonl --texts 60 --mistake-share 0",
  ],
  logprobs: ["longrun logprobs --model quickstart --tokens tokens.jsonl"],
  generate: ["longrun generate --model quickstart --prompts prompts.jsonl --temperature 0"],
  model: [
    "longrun model fetch Qwen/Qwen2.5-0.5B-Instruct",
    "longrun model info quickstart",
    "longrun model tokenize quickstart 'import pandas as pd'",
    "longrun model info quickstart --plan",
    "longrun model info quickstart --plan lora --tokens 256:256",
    "longrun model convert quickstart --out policies/half --dtype bfloat16",
  ],
  serve: [
    "longrun serve --model quickstart",
    "longrun serve --run runs/short --port 9000",
    "longrun serve --tls certificates/generator --model quickstart",
  ],
  certificates: ["longrun certificates --out certificates --hosts gpu-1.example.com,10.0.0.7"],
};

/** Returns the section of a command's help. */
export const examplesOf = (command: string): string =>
  `\nExamples:\n${EXAMPLES[command]!.map((line) => `  ${line}\n`).join("")}`;
