/** The names in a task's files. Rows, labels and scores of a task are never read here. */
export interface TaskShape {
  name: string;
  /** The header of train.csv. */
  columns: readonly string[];
  target: string;
  numeric: readonly string[];
  categorical: readonly string[];
  /** The column with free text, in tasks about text. */
  text?: string;
  /** Commonly known ranks of categories, as a Python expression that maps a value to its rank. */
  ranks?: Readonly<Record<string, string>>;
  /** Derived columns: a plan's words for them, and their Python expression over the frame `d`. */
  derived: readonly { phrase: string; column: string; expression: string }[];
  /** Range of the losses that the generator invents for terminal output. */
  lossRange: readonly [low: number, high: number];
}

export const shapes: readonly TaskShape[] = [
  {
    name: "diamonds",
    columns: ["id", "carat", "cut", "color", "clarity", "depth", "table", "x", "y", "z", "price"],
    target: "price",
    numeric: ["carat", "depth", "table", "x", "y", "z"],
    categorical: ["cut", "color", "clarity"],
    ranks: {
      cut: '["Fair","Good","Very Good","Premium","Ideal"].index',
      color: '"JIHGFED".index',
      clarity: '["I1","SI2","SI1","VS2","VS1","VVS2","VVS1","IF"].index',
    },
    derived: [
      { phrase: "the volume", column: "volume", expression: 'd["x"] * d["y"] * d["z"]' },
      { phrase: "the size", column: "size", expression: 'd["x"] + d["y"]' },
      { phrase: "carat squared", column: "carat2", expression: 'd["carat"] ** 2' },
      { phrase: "log carat", column: "log_carat", expression: 'np.log(d["carat"])' },
      { phrase: "carat per depth", column: "ratio", expression: 'd["carat"] / d["depth"]' },
    ],
    lossRange: [30, 3000],
  },
  {
    name: "movie",
    columns: ["id", "text", "rating"],
    target: "rating",
    numeric: [],
    categorical: [],
    text: "text",
    derived: [
      { phrase: "the length", column: "length", expression: 'd["text"].str.len()' },
      { phrase: "the number of words", column: "words", expression: 'd["text"].str.count(" ")' },
      { phrase: "the number of commas", column: "commas", expression: 'd["text"].str.count(",")' },
      { phrase: "praise", column: "praise", expression: 'd["text"].str.count("good|best|love|funny")' },
      { phrase: "complaints", column: "complaints", expression: 'd["text"].str.count("bad|dull|never|too")' },
    ],
    lossRange: [0.1, 2],
  },
  {
    name: "wage",
    columns: ["id", "year", "age", "maritl", "race", "education", "jobclass", "health", "health_ins", "wage"],
    target: "wage",
    numeric: ["year", "age"],
    categorical: ["maritl", "race", "education", "jobclass", "health", "health_ins"],
    derived: [
      { phrase: "age squared", column: "age2", expression: 'd["age"] ** 2' },
      { phrase: "age cubed", column: "age3", expression: 'd["age"] ** 3' },
      { phrase: "log age", column: "log_age", expression: 'np.log(d["age"])' },
      { phrase: "the years since 2003", column: "since", expression: 'd["year"] - 2003' },
      { phrase: "a flag for age above 50", column: "old", expression: '(d["age"] > 50).astype(int)' },
    ],
    lossRange: [10, 45],
  },
];
