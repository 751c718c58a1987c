/** The objects of a manifest file, as kubectl reads it: one YAML document for each, or items of a `List`. */
import { type Document, isMap, isScalar, isSeq, LineCounter, type Node, parseAllDocuments, type YAMLMap } from "yaml";
import { ManifestError } from "./errors.ts";

export interface ManifestObject {
  contents: YAMLMap;
  /** Holds the anchors that the object may refer to. */
  document: Document;
  lines: LineCounter;
  /** Where the object is in a file of several, such as `document 2, TrainingRun a`; otherwise empty. */
  label: string;
}

export interface ManifestFile {
  /** At least one TrainingRun or object that may be meant as one. None is checked yet. */
  runs: ManifestObject[];
  /** TrainingRuntimes, if they are read. */
  runtimes: ManifestObject[];
  /** Kind and name of each other object, such as `Secret hub`. */
  skipped: string[];
}

/**
 * @param withRuntimes whether TrainingRuntimes are read too; otherwise they are skipped
 * @throws ManifestError if a document is not valid YAML or no object, or if nothing that is read is in the file
 */
export function readManifestFile(text: string, source: string, withRuntimes = false): ManifestFile {
  const objects = readObjects(text, source);
  const runtimes = withRuntimes ? objects.filter(isRuntime) : [];
  const skipped = objects.filter((object) => !isRun(object) && !runtimes.includes(object)).map(nameOf);
  const runs = objects.filter(isRun);
  if (runs.length + runtimes.length > 0) return { runs, runtimes, skipped };
  const others = skipped.length === 0 ? "" : ` but ${skipped.join(", ")}`;
  throw new ManifestError([
    `${source}: holds no TrainingRun${others}; give a file that has an object of apiVersion longrun.dev/v1alpha1 and ` +
      "kind TrainingRun, such as manifests/quickstart/trainingrun.yaml",
  ]);
}

/** Returns the TrainingRun of a file that has exactly one. @throws ManifestError if it has another number of them */
export function onlyRun({ runs }: ManifestFile, source: string): ManifestObject {
  if (runs.length === 1) return runs[0]!;
  const names = runs.map((run) => `${String(run.contents.getIn(["metadata", "name"]))} in line ${firstLineOf(run)}`);
  throw new ManifestError([
    `${source}: holds ${runs.length} TrainingRuns (${names.join(", ")}); put each into a separate file`,
  ]);
}

/** Returns one sentence about the objects of other kinds in a file; undefined if there are none. */
export function skippedText({ skipped }: ManifestFile, source: string): string | undefined {
  if (skipped.length === 0) return undefined;
  const objects = skipped.length === 1 ? "1 object of another kind" : `${skipped.length} objects of other kinds`;
  return `${source}: skipped ${objects}: ${skipped.join(", ")}`;
}

/** Returns every object of a file, with the items of lists. Empty documents are left out, but count in the documents' numbers. */
export function readObjects(text: string, source: string): ManifestObject[] {
  const lines = new LineCounter();
  const documents = [...parseAllDocuments(text, { lineCounter: lines, prettyErrors: false })];
  const isSeveral = documents.filter((document) => !isEmpty(document)).length > 1;
  const refuse = (offset: number, place: string[], what: string, cause?: unknown): never => {
    const at = [`${source}:${lines.linePos(offset).line}`, ...(place.length > 0 ? [place.join(", ")] : [])];
    throw new ManifestError([`${at.join(": ")}: ${what}`], { cause });
  };
  const objectsIn = (contents: unknown, document: Document, place: string[]): ManifestObject[] => {
    if (!isMap(contents))
      return refuse(
        (contents as Node | null)?.range?.[0] ?? 0,
        place,
        "holds no object; write apiVersion, kind, metadata and spec as in manifests/quickstart",
      );
    const items = /List$/.test(String(contents.get("kind"))) ? contents.get("items") : undefined;
    if (isSeq(items))
      return items.items.flatMap((item, index) => objectsIn(item, document, [...place, `item ${index + 1}`]));
    const object = { contents, document, lines, label: "" };
    return [{ ...object, label: place.length === 0 ? "" : [...place, nameOf(object)].join(", ") }];
  };
  const objects = documents.flatMap((document, index) => {
    const place = isSeveral ? [`document ${index + 1}`] : [];
    const [error] = document.errors;
    if (error) refuse(error.pos[0], place, `not valid YAML: ${error.message}`, error);
    return isEmpty(document) ? [] : objectsIn(document.contents, document, place);
  });
  return documents.every(isEmpty) ? objectsIn(null, documents[0]!, []) : objects;
}

/** @returns the line in which an object begins */
export function firstLineOf({ contents, lines }: ManifestObject): number {
  return lines.linePos(contents.range?.[0] ?? 0).line;
}

function isEmpty({ contents, errors }: Document): boolean {
  return errors.length === 0 && (contents === null || (isScalar(contents) && contents.value === null));
}

/** Returns true also for unknown kinds of longrun's group and objects without a kind, so that a misspelt kind is refused. */
function isRun(object: ManifestObject): boolean {
  const kind = object.contents.get("kind");
  if (kind === "TrainingRun" || typeof kind !== "string") return true;
  return /^longrun\.dev\//.test(String(object.contents.get("apiVersion"))) && !isRuntime(object);
}

export const isRuntime = ({ contents }: ManifestObject): boolean => contents.get("kind") === "TrainingRuntime";

function nameOf({ contents }: Pick<ManifestObject, "contents">): string {
  const name = contents.getIn(["metadata", "name"]);
  return [contents.get("kind") ?? "no kind", ...(name === undefined ? [] : [name])].map(String).join(" ");
}
