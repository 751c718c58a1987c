/**
 * Synthetic stand-ins for the twelve MLE-bench tasks, for tests: the files, folders and columns that `mlebench prepare` (openai/mle-bench,
 * commit 783b15a) makes, filled with invented values. They contain no competition data, and a score on them says nothing about the task.
 *
 *     node test/tasks/standins.ts DIR [TASK ...]     writes DIR/TASK/prepared/{public,private}, the same bytes every time
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { mleBenchTasks } from "../../learner/grading/mlebench-tasks.ts";
import { greyJpeg, zip } from "./binary-files.ts";
import { describeStandIn } from "./standin-descriptions.ts";
import { pizzaLater, pizzaRequest } from "./standin-pizza.ts";
import {
  csv,
  Draw,
  type Files,
  oneHot,
  only,
  pleasant,
  type Row,
  sizes,
  split,
  tables,
  unpleasant,
  without,
  withValues,
} from "./standin-tables.ts";

const standIns: Record<string, (draw: Draw) => Files> = {
  "detecting-insults-in-social-commentary": (draw) => {
    const { train, test } = split((i) => {
      const Insult = i % 3 === 0 ? 1 : 0;
      const date = draw.chance(0.2)
        ? ""
        : `20120${draw.int(1, 9)}${draw.int(10, 28)}${draw.int(10, 23)}${draw.int(10, 59)}${draw.int(10, 59)}Z`;
      const said =
        draw.words(draw.int(5, 30)) + (Insult ? ` you are ${draw.pick(unpleasant)}` : ` it is ${draw.pick(pleasant)}`);
      return { Insult, Date: date, Comment: `"${said} ""number ${i}""\\n${draw.hex(6)}"` };
    });
    const answers = withValues(test, {}).map((row, i) => ({
      ...row,
      Usage: i % 2 === 0 ? "PublicTest" : "PrivateTest",
    }));
    return {
      "public/train.csv": csv(train),
      "public/test.csv": csv(without(test, "Insult")),
      "public/sample_submission_null.csv": csv(withValues(test, { Insult: 0 })),
      "private/test.csv": csv(answers),
      "private/gold_submission.csv": csv(test),
    };
  },
  "learning-agency-lab-automated-essay-scoring-2": (draw) => {
    const { train, test } = split((i) => {
      const score = (i % 6) + 1;
      const paragraphs = Array.from({ length: 2 }, () => draw.words(20 + 12 * score));
      return { essay_id: draw.hex(7), full_text: paragraphs.join(".\n\n"), score };
    });
    const sample = only(test, "essay_id").map((row) => ({ ...row, score: draw.int(1, 6) }));
    return tables(train, without(test, "score"), sample, test, "answers.csv");
  },
  "random-acts-of-pizza": (draw) => {
    const { train, test } = split((i) => pizzaRequest(draw, i));
    const answers = only(test, "request_id", "requester_received_pizza").map((row) => ({
      ...row,
      requester_received_pizza: Number(row.requester_received_pizza),
    }));
    const kept = Object.keys(test[0]!).filter((name) => !pizzaLater.includes(name));
    const json = (rows: Row[]) => JSON.stringify(rows, null, 4);
    const [trainJson, testJson] = [json(train), json(only(test, ...kept))];
    return {
      "public/train.json": trainJson,
      "public/test.json": testJson,
      "public/train.zip": zip("train.json", Buffer.from(trainJson)),
      "public/test.zip": zip("test.json", Buffer.from(testJson)),
      "public/sampleSubmission.csv": csv(withValues(answers, { requester_received_pizza: 0 })),
      "private/test.csv": csv(answers),
    };
  },
  "tweet-sentiment-extraction": (draw) => {
    const { train, test } = split((i) => {
      const sentiment = ["neutral", "positive", "negative"][i % 3]!;
      const said = sentiment === "positive" ? pleasant : unpleasant;
      const feeling = `so ${draw.pick(said)} ${draw.pick(said)}!`;
      const text = `${draw.words(draw.int(2, 6))}, ${sentiment === "neutral" ? draw.words(4) : feeling} ${draw.words(3)}`;
      return {
        textID: draw.hex(10),
        text: ` ${text}`,
        selected_text: sentiment === "neutral" ? text : feeling,
        sentiment,
      };
    });
    return tables(
      train,
      without(test, "selected_text"),
      withValues(only(test, "textID", "selected_text"), { selected_text: "" }),
      test,
    );
  },
  "tabular-playground-series-may-2022": (draw) => {
    const { train, test } = split((i, part) => {
      const row: Row = { id: part === "train" ? i : sizes.train + i };
      for (let f = 0; f <= 30; f++)
        row[`f_${String(f).padStart(2, "0")}`] =
          f === 27
            ? Array.from({ length: 10 }, () => draw.pick([..."ABCDEFGH"])).join("")
            : (f >= 7 && f <= 18) || f >= 29
              ? draw.int(0, f >= 29 ? 2 : 9)
              : draw.real(-3, 3, 12);
      return { ...row, target: Number(row.f_00) + Number(row.f_07) / 3 + draw.real(-1, 1) > 1.5 ? 1 : 0 };
    });
    const gold = only(test, "id", "target");
    return {
      ...tables(train, without(test, "target"), withValues(gold, { target: 0.5 }), test),
      "private/gold_submission.csv": csv(gold),
    };
  },
  "tabular-playground-series-dec-2021": (draw) => {
    const soils = Array.from({ length: 40 }, (_, i) => `Soil_Type${i + 1}`);
    const areas = ["Wilderness_Area1", "Wilderness_Area2", "Wilderness_Area3", "Wilderness_Area4"];
    const flags = (names: readonly string[], one: number) =>
      Object.fromEntries(names.map((name, i) => [name, i === one ? 1 : 0]));
    const { train, test } = split((i, part) => {
      const Cover_Type = (i % 7) + 1;
      const slope = { Aspect: draw.int(0, 359), Slope: draw.int(0, 50) };
      const distances = {
        Horizontal_Distance_To_Hydrology: draw.int(0, 1000),
        Vertical_Distance_To_Hydrology: draw.int(-50, 300),
        Horizontal_Distance_To_Roadways: draw.int(0, 6000),
      };
      const shade = {
        Hillshade_9am: draw.int(120, 255),
        Hillshade_Noon: draw.int(150, 255),
        Hillshade_3pm: draw.int(50, 255),
      };
      return {
        Id: (part === "train" ? 0 : 4_000_000) + i,
        ...{ Elevation: 2000 + 200 * Cover_Type + draw.int(-150, 150), ...slope, ...distances, ...shade },
        Horizontal_Distance_To_Fire_Points: draw.int(0, 6000),
        ...flags(areas, draw.int(0, 3)),
        ...flags(soils, draw.int(0, 39)),
        Cover_Type,
      };
    });
    return tables(
      train,
      without(test, "Cover_Type"),
      withValues(only(test, "Id", "Cover_Type"), { Cover_Type: 2 }),
      only(test, "Id", "Cover_Type"),
    );
  },
  "us-patent-phrase-to-phrase-matching": (draw) => {
    const { train, test } = split((i) => {
      const score = (i % 5) / 4;
      const anchor = draw.words(2);
      const target = score === 1 ? anchor : score === 0 ? draw.words(2) : `${anchor.split(" ")[0]} ${draw.words(1)}`;
      return {
        id: draw.hex(16),
        anchor,
        target,
        context: `${draw.pick([..."ABCDEFGH"])}${draw.int(10, 99)}`,
        score: score.toFixed((score * 4) % 2 === 0 ? 1 : 2),
      };
    });
    return tables(train, without(test, "score"), withValues(only(test, "id", "score"), { score: 0 }), test);
  },
  "plant-pathology-2020-fgvc7": (draw) => {
    const classes = mleBenchTasks()["plant-pathology-2020-fgvc7"]!.targetColumns;
    const images: Files = {};
    const { train, test } = split((i, part) => {
      const image_id = `${part === "train" ? "Train" : "Test"}_${i}`;
      images[`public/images/${image_id}.jpg`] = greyJpeg([
        [40 + 50 * (i % 4) + draw.int(0, 20), 200],
        [90, draw.int(0, 255)],
      ]);
      return { image_id, ...Object.fromEntries(classes.map((name, c) => [name, c === i % 4 ? 1 : 0])) };
    });
    const quarter = Object.fromEntries(classes.map((name) => [name, 0.25]));
    return { ...images, ...tables(train, only(test, "image_id"), withValues(test, quarter), test) };
  },
  "leaf-classification": (draw) => {
    const classes = mleBenchTasks()["leaf-classification"]!.targetColumns;
    const images: Files = {};
    let id = 0;
    const { train, test } = split((i) => {
      const row: Row = { id: ++id, species: classes[i % classes.length]! };
      for (const feature of ["margin", "shape", "texture"])
        for (let k = 1; k <= 64; k++)
          row[`${feature}${k}`] = draw.real(0, 0.03, 6) + (k === (i % classes.length) % 64 ? 0.2 : 0);
      images[`public/images/${id}.jpg`] = greyJpeg([
        [255, (i % classes.length) * 2],
        [0, 255],
      ]);
      return row;
    });
    const answers = oneHot(test, "id", "species", classes);
    const even = Object.fromEntries(classes.map((name) => [name, 1 / classes.length]));
    return { ...images, ...tables(train, without(test, "species"), withValues(answers, even), answers) };
  },
  "nomad2018-predict-transparent-conductors": (draw) => {
    const targets = mleBenchTasks()["nomad2018-predict-transparent-conductors"]!.targetColumns;
    const geometries: Files = {};
    const { train, test } = split((i, part) => {
      const aluminium = draw.real(0, 1);
      const gallium = draw.real(0, 1 - aluminium);
      const lattice = [draw.real(3, 25), draw.real(3, 25), draw.real(3, 25)];
      const atoms = Array.from(
        { length: 3 },
        () => `atom ${draw.real(0, 9)} ${draw.real(0, 9)} ${draw.real(0, 9)} ${draw.pick(["Al", "Ga", "In", "O"])}`,
      );
      const vectors = lattice.map(
        (length, axis) => `lattice_vector ${[0, 1, 2].map((k) => (k === axis ? length : 0)).join(" ")}`,
      );
      geometries[`public/${part}/${i + 1}/geometry.xyz`] =
        `#=======\n#Synthetic stand-in\n#=======\n${[...vectors, ...atoms].join("\n")}\n`;
      return {
        id: i + 1,
        spacegroup: draw.pick([12, 33, 167, 194, 206, 227]),
        number_of_total_atoms: draw.pick([10, 20, 30, 40, 60, 80]),
        percent_atom_al: aluminium,
        percent_atom_ga: gallium,
        percent_atom_in: Number((1 - aluminium - gallium).toFixed(4)),
        ...Object.fromEntries(lattice.map((length, axis) => [`lattice_vector_${axis + 1}_ang`, length])),
        lattice_angle_alpha_degree: draw.real(80, 100),
        lattice_angle_beta_degree: draw.real(80, 110),
        lattice_angle_gamma_degree: draw.real(60, 121),
        [targets[0]!]: Number((0.1 + 0.3 * gallium + draw.real(0, 0.05)).toFixed(4)),
        [targets[1]!]: Number((1 + 4 * aluminium + draw.real(0, 0.5)).toFixed(4)),
      };
    });
    const sample = withValues(only(test, "id", ...targets), { [targets[0]!]: 0.1779, [targets[1]!]: 1.8892 });
    return { ...geometries, ...tables(train, without(test, ...targets), sample, test) };
  },
  "spooky-author-identification": (draw) => {
    const { train, test } = split((i) => {
      const author = ["EAP", "HPL", "MWS"][i % 3]!;
      const said = draw.pick(
        [
          ["raven", "vault"],
          ["cult", "dream"],
          ["father", "ice"],
        ][i % 3]!,
      );
      return {
        id: `id${String(draw.int(0, 99)).padStart(2, "0")}${String(i).padStart(3, "0")}`,
        text: `The ${said}, ${draw.words(draw.int(8, 30))}; "${draw.words(3)}".`,
        author,
      };
    });
    const answers = oneHot(test, "id", "author", ["EAP", "HPL", "MWS"]);
    const sample = { EAP: 0.403493538995863, HPL: 0.287808366106543, MWS: 0.308698094897594 };
    return tables(train, without(test, "author"), withValues(answers, sample), answers);
  },
  "lmsys-chatbot-arena": (draw) => {
    const models = ["model-one", "model-two", "model-three", "model-four"];
    const { train, test } = split((i) => {
      const turns = draw.int(1, 2);
      const texts = (count: number) =>
        JSON.stringify(Array.from({ length: turns }, () => `${draw.words(count)}\n"${draw.words(2)}"`));
      const lengths = [draw.int(5, 60), draw.int(5, 60)] as const;
      const winner = i % 3 === 2 ? 2 : lengths[0] > lengths[1] ? 0 : 1;
      return {
        ...{ id: 30_000 + 57 * i + draw.int(0, 50), model_a: draw.pick(models), model_b: draw.pick(models) },
        ...{ prompt: texts(8), response_a: texts(lengths[0]), response_b: texts(lengths[1]) },
        winner_model_a: Number(winner === 0),
        winner_model_b: Number(winner === 1),
        winner_tie: Number(winner === 2),
      };
    });
    const third = {
      winner_model_a: 0.3333333333333333,
      winner_model_b: 0.3333333333333333,
      winner_tie: 0.3333333333333333,
    };
    const sample = withValues(only(test, "id"), third);
    return tables(train, only(test, "id", "prompt", "response_a", "response_b"), sample, test, "answers.csv");
  },
};

/** Returns the files of a stand-in, below `prepared/`. */
export function standIn(task: string): Files {
  const make = standIns[task];
  if (!make) throw new Error(`no stand-in for ${task}; there are ${Object.keys(standIns).join(", ")}`);
  return {
    ...make(new Draw(task)),
    "public/description.md": describeStandIn(task, new Draw(`${task} description`).words),
  };
}

/** @returns the folder of the task */
export function writeStandIn(task: string, parent: string): string {
  const folder = join(parent, task);
  mkdirSync(join(folder, "prepared/private"), { recursive: true });
  for (const [path, content] of Object.entries(standIn(task))) {
    const file = join(folder, "prepared", path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  return folder;
}

if (import.meta.main) {
  const [parent, ...tasks] = process.argv.slice(2);
  if (parent === undefined) {
    process.stderr.write("usage: node test/tasks/standins.ts DIR [TASK ...]\n");
    process.exit(2);
  }
  for (const task of tasks.length > 0 ? tasks : Object.keys(mleBenchTasks()))
    process.stdout.write(`${writeStandIn(task, parent)}\n`);
}
