import assert from "node:assert/strict";
import { test } from "node:test";
import { printBest } from "./best.ts";

const FACTS = JSON.stringify({ score: 2, metric: "MAE", iteration: 1, durationSeconds: 0.5 });

/** Returns what `longrun best` prints for a run folder that has a best program in each of `folders`. */
async function printed(
  folders: string[],
  tasks: string[],
  task?: string,
  lines?: string,
  facts = FACTS,
): Promise<string> {
  const chunks: string[] = [];
  const screen = { write: (text: string) => void chunks.push(text) };
  const read = async (path: string) => {
    if (path === "metrics.jsonl") return lines;
    const [folder, file] = [path.slice(0, path.lastIndexOf("/")), path.slice(path.lastIndexOf("/") + 1)];
    if (!folders.includes(folder)) return undefined;
    return file === "score.json" ? facts : `print("${folder}")\n`;
  };
  await printBest("quick", tasks, { task, json: false }, read, screen);
  return chunks.join("");
}

test("printBest finds the best program of a task, wherever the run keeps it", async () => {
  const head = "# MAE 2 · written by the policy of iteration 1 · ran 0.50 s\n";
  assert.equal(await printed(["best"], ["wage"]), `${head}print("best")\n`);
  assert.equal(await printed(["best"], ["wage"], "wage"), `${head}print("best")\n`);
  assert.equal(await printed(["best/wage", "best/movie"], ["wage"]), `${head}print("best/wage")\n`);
  const two = ["best/movie", "best/wage"];
  assert.equal(await printed(two, ["movie", "wage"], "wage"), `${head}print("best/wage")\n`);
  assert.equal(await printed(two, ["movie"], "wage"), `${head}print("best/wage")\n`, "a task that was removed");
});

test("The iteration is that of the row with the program's score", async () => {
  const rows = [
    { iteration: 1, bestScore: 3, tasks: { wage: { bestScore: 2 } } },
    { iteration: 2, bestScore: 2, tasks: { wage: { bestScore: 5 } } },
  ];
  const lines = rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  assert.match(await printed(["best"], ["wage"], undefined, lines), /^# MAE 2 · iteration 2 · ran/);
  assert.match(await printed(["best/wage"], ["movie", "wage"], "wage", lines), /^# MAE 2 · iteration 1 · ran/);
});

test("The private score stands beside the public one, or the reason why there is none", async () => {
  const head = async (more: object) =>
    (await printed(["best"], ["wage"], undefined, undefined, JSON.stringify({ ...JSON.parse(FACTS), ...more }))).split(
      " · ",
    )[0];
  assert.equal(await head({ privateScore: 2.5 }), "# MAE 2 (private 2.5)");
  assert.equal(await head({ noPrivateScore: "MAE is undefined" }), "# MAE 2 (no private score: MAE is undefined)");
});

test("The command needs the name of one of the run's tasks", async () => {
  const tasks = ["movie", "wage"];
  const input = (message: RegExp) => ({ code: "input", message });
  await assert.rejects(printed([], tasks), input(/^quick has several tasks; name one with --task: movie, wage$/));
  await assert.rejects(printed([], tasks, "diamonds"), input(/^--task diamonds: quick has no such task; it has movie/));
  await assert.rejects(printed(["best/../x"], tasks, "../x"), input(/no name of a task/));
  await assert.rejects(printed(["best/movie"], tasks, "wage"), {
    code: "failed",
    message: "no program of quick for task wage was valid yet",
  });
});
