/** Makes a TrainingRun fit this machine: absolute paths, and no field that only a cluster can honour. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { MLE_BENCH_TASKS } from "../../../crds/mlebench.ts";
import { isPolicyName, policyFolder } from "../../../crds/policy.ts";
import { ManifestError, type Task, type TrainingRun, type VolumeSource } from "../../../crds/trainingrun.ts";
import { BUNDLED, isTaskName } from "../../bundled.ts";
import { ControllerError } from "../../errors.ts";

/** Fields that have a meaning only on Kubernetes, with the remedy on one machine. */
const CLUSTER_ONLY: { path: string; set: (run: TrainingRun) => boolean; remedy: string }[] = [
  { path: "spec.suspend", set: ({ spec }) => spec.suspend, remedy: "remove it; stop a run here with Ctrl-C" },
  {
    path: "spec.runtimeRef",
    set: ({ spec }) => spec.runtimeRef !== undefined,
    remedy: "give its manifest with --runtime FILE (kubectl get trainingruntime NAME -o yaml), or remove it",
  },
  { path: "spec.actors.isolation", set: ({ spec }) => spec.actors.isolation === "Pod", remedy: "set it to Container" },
  { path: "spec.initFrom.run", set: ({ spec }) => spec.initFrom?.run !== undefined, remedy: "give initFrom.path" },
  {
    path: "spec.initFrom.volume",
    set: ({ spec }) => spec.initFrom?.volume !== undefined,
    remedy: "resume that run with longrun run --resume",
  },
  {
    path: "spec.warmStart.data",
    set: ({ spec }) => spec.warmStart !== undefined && spec.warmStart.data.path === undefined,
    remedy: "give a path",
  },
  {
    path: "spec.notifications.webhook.urlFrom",
    set: ({ spec }) => spec.notifications?.webhook?.urlFrom !== undefined,
    remedy: "give notifications.webhook.url, with --set if it is a secret",
  },
];

export const KUBERNETES_ONLY = "works on Kubernetes only";

/** MLE-bench's names for the file with a task's answers. */
export const ANSWERS = ["answers.csv", "test.csv"];
/** A policy folder must have one file of each line. */
const POLICY_FILES = [["config.json"], ["model.safetensors", "model.safetensors.index.json"], ["tokenizer.json"]];

/**
 * @param source name of the manifest in errors
 * @param directory base folder of relative paths
 * @returns a copy with absolute paths
 * @throws ManifestError | ControllerError `input`
 */
export function resolveForThisMachine(run: TrainingRun, source: string, directory: string): TrainingRun {
  const rules = [...CLUSTER_ONLY, ...run.spec.tasks.flatMap(dataOnCluster)];
  const problems = rules
    .filter((rule) => rule.set(run))
    .map(({ path, remedy }) => `${source}: ${path} cannot be used here: ${KUBERNETES_ONLY}; ${remedy}`);
  if (problems.length > 0) throw new ManifestError(problems);

  const resolved = structuredClone(run);
  const { spec } = resolved;
  const { policy } = spec.model; // absent: it is fetched later
  const folder = policy === undefined ? undefined : policyFolder(policy, source, directory);
  // A name stays a name: a run folder can then be taken to another machine.
  if (policy !== undefined && !isPolicyName(policy)) spec.model.policy = folder!;
  if (spec.initFrom?.path !== undefined) spec.initFrom.path = resolve(directory, spec.initFrom.path);
  const data = spec.warmStart?.data;
  if (data?.path !== undefined) data.path = resolve(directory, data.path);
  for (const task of spec.tasks)
    for (const volume of [task.publicData, task.privateData])
      if (volume?.path !== undefined) volume.path = resolve(directory, volume.path);
  refuseUnknownTasks(resolved, source);
  refuseReadableAnswers(resolved, source);
  checkFiles(resolved, source, directory, folder);
  return resolved;
}

/** Returns the fields of a task's data that need a cluster. */
function dataOnCluster(task: Task, index: number): typeof CLUSTER_ONLY {
  return (["publicData", "privateData"] as const).map((field) => ({
    path: `spec.tasks[${index}].${field}`,
    set: () => task[field] !== undefined && task[field].path === undefined,
    remedy: "give a path",
  }));
}

/** Refuses a task without data whose name is no bundled task. */
function refuseUnknownTasks({ spec }: TrainingRun, source: string): void {
  const index = spec.tasks.findIndex(({ name, publicData }) => publicData === undefined && !isTaskName(name));
  if (index < 0) return;
  throw new ManifestError([
    `${source}: spec.tasks[${index}].name is ${spec.tasks[index]!.name}: longrun has no bundled task of this name; ` +
      `give one of ${BUNDLED.tasks.join(", ")}, or publicData and privateData`,
  ]);
}

/** Refuses answers of any task inside public data, because programs can read all of a task's public data. */
function refuseReadableAnswers({ spec }: TrainingRun, source: string): void {
  const within = (path: string, parent: string) => !relative(parent, path).startsWith("..");
  for (const [open, { publicData }] of spec.tasks.entries())
    for (const [index, { privateData }] of spec.tasks.entries())
      if (publicData?.path && privateData?.path && within(privateData.path, publicData.path))
        throw new ManifestError([
          `${source}: spec.tasks[${index}].privateData: ${privateData.path} is within spec.tasks[${open}].publicData, so that ` +
            "programs could read the answers; keep them apart",
        ]);
}

/** Whether a folder is that of a run whose warm start is over: a resumed run needs its data no more. */
function isWarm(directory: string): boolean {
  const record = join(directory, "warm-start/sft.json");
  return existsSync(record) && JSON.parse(readFileSync(record, "utf8")).state === "finished";
}

function checkFiles({ spec }: TrainingRun, source: string, directory: string, policy: string | undefined): void {
  const missing = (path: string, field: string, what: string): void => {
    if (existsSync(path)) return;
    throw new ControllerError("input", `${source}: ${field}: ${path} is missing; ${what}`);
  };
  const folder = (volume: VolumeSource, field: string): string => {
    const path = volume.path!;
    const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory();
    if (isFolder) return path;
    const what =
      isFolder === false ? "is a file; give the folder that it is in" : "there is no such folder; check the path";
    throw new ControllerError("input", `${source}: ${field}: ${path}: ${what}`);
  };
  for (const names of policy === undefined ? [] : POLICY_FILES)
    if (!names.some((name) => existsSync(join(policy!, name))))
      missing(join(policy!, names[0]!), "spec.model.policy", "name a folder in Hugging Face format");
  if (spec.initFrom?.path) missing(spec.initFrom.path, "spec.initFrom.path", "name a checkpoint folder of another run");
  if (spec.warmStart?.data.path && !isWarm(directory))
    missing(
      spec.warmStart.data.path,
      "spec.warmStart.data.path",
      "name a file of lines, or a folder with .jsonl files",
    );
  spec.tasks.forEach((task, index) => {
    if (!task.publicData) return;
    const at = `spec.tasks[${index}]`;
    const data = folder(task.publicData, `${at}.publicData.path`);
    // The files of an MLE-bench task have names of their own, which the learner knows.
    if (!MLE_BENCH_TASKS.includes(task.name)) {
      missing(join(data, "train.csv"), `${at}.publicData.path`, "name a folder with train.csv and test.csv");
      missing(
        join(data, "sample_submission.csv"),
        `${at}.publicData.path`,
        "programs and the grader take the form of a submission from it",
      );
    }
    if (task.description === undefined)
      missing(join(data, "description.md"), `${at}.publicData.path`, "add it, or give description");
    const answers = folder(task.privateData!, `${at}.privateData.path`);
    if (!ANSWERS.some((file) => existsSync(join(answers, file))))
      throw new ControllerError(
        "input",
        `${source}: ${at}.privateData.path: ${answers} has no ${ANSWERS.join(" and no ")}; nothing can be graded without the answers`,
      );
  });
}
