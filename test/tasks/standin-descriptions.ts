/** Makes pages with the lengths and sections of competitions' pages, but without their text. */
import { mleBenchTasks } from "../../learner/grading/mlebench-tasks.ts";

const note = "This page belongs to a synthetic stand-in: the data is invented, and so is this text.";

/** @param words returns this many invented words */
export function describeStandIn(id: string, words: (count: number) => string): string {
  const { statement, idColumn, targetColumns, metric, files } = mleBenchTasks()[id]!;
  const paragraph = (count = 60) => `${words(count)}.`;
  return `# Overview

## Description

${note} [A link](https://example.org/${id}/a/rather/long/address?with=parameters).

![an image](https://example.org/images/${id}.png)

${paragraph(90)}

${paragraph(90)}

${paragraph(60)}

### Acknowledgments

${paragraph(50)}

## Evaluation

Submissions are evaluated with ${metric}.

$$
s = \\frac{1}{n} \\sum_{i=1}^{n} f(y_i, p_i)
$$

${paragraph(40)}

### Submission File

For each \`${idColumn}\` in the test set, predict ${targetColumns.slice(0, 4).join(", ")}. The file should contain a header.

## Timeline

- **January 1** - Start date.
- **March 1** - Final submission deadline.

${paragraph(40)}

## Prizes

- 1st place - ${words(3)}

### How does it work?

${paragraph(40)}

## Code Requirements

${paragraph(70)}

## Citation

${paragraph(20)}

# Data

## Dataset Description

${statement}

${paragraph(50)}

### Files

${files.map((file) => `- **${file}** - ${words(6)}`).join("\n")}

### Data fields

- \`${idColumn}\` - ${words(8)}
${targetColumns
  .slice(0, 5)
  .map((name) => `- \`${name}\` - ${words(8)}`)
  .join("\n")}
`;
}
