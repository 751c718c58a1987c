/** Tasks that are graded like MLE-bench's. */
export const MLE_BENCH_TASKS = [
  "detecting-insults-in-social-commentary",
  "learning-agency-lab-automated-essay-scoring-2",
  "random-acts-of-pizza",
  "tweet-sentiment-extraction",
  "tabular-playground-series-may-2022",
  "tabular-playground-series-dec-2021",
  "us-patent-phrase-to-phrase-matching",
  "plant-pathology-2020-fgvc7",
  "leaf-classification",
  "nomad2018-predict-transparent-conductors",
  "spooky-author-identification",
  "lmsys-chatbot-arena",
];
