/** The tables of the pages for author and platform team. */
import { RUNTIME_FIELDS } from "./runtime-fields.ts";
import type { Schema } from "./schema.ts";

/** Returns the fields of a TrainingRuntime with their meaning. @param spec its schema */
export function runtimeTable(spec: Schema): string {
  const rows = [
    ...Object.entries(RUNTIME_FIELDS),
    ["limits", Object.keys(spec.properties!.limits!.properties!)] as const,
  ]
    .flatMap(([path, names]) =>
      names.map((name) => [path === "" ? name : `${path}.${name}`, at(spec, path, name)] as const),
    )
    .map(([field, { description = "" }]) => `| \`${field}\` | ${description.replace(/ \([^()]*; ours\)/, "")} |`);
  return ["| field | meaning |", "| --- | --- |", ...rows].join("\n");
}

/** Returns the parts of a TrainingRun with the fields of its author, and those of which a runtime has defaults. @param spec its schema */
export function authorTable(spec: Schema): string {
  const ofRuntime = (path: string): readonly string[] => RUNTIME_FIELDS[path as keyof typeof RUNTIME_FIELDS] ?? [];
  const own = ofRuntime("");
  const fieldsOf = (part: Schema): string[] => Object.keys(part.properties ?? part.items?.properties ?? {});
  const all = Object.entries(spec.properties!).filter(([name]) => !own.includes(name));
  const rows = all
    .filter(([, part]) => fieldsOf(part).length > 0)
    .map(([name, part]) => {
      const fields = fieldsOf(part);
      const given = [
        ...ofRuntime(name),
        ...fields.flatMap((field) => ofRuntime(`${name}.${field}`).map((below) => `${field}.${below}`)),
      ];
      const left = fields.filter((field) => !given.some((it) => it === field || it.startsWith(`${field}.`)));
      return `| \`${name}\` | ${codes(left)} | ${codes(given)} |`;
    });
  const single = all.filter(([, part]) => fieldsOf(part).length === 0).map(([name]) => name);
  const shared = `| others | ${codes(single)} | ${codes(own)} |`;
  return ["| part | the author's | a runtime's, if left out |", "| --- | --- | --- |", ...rows, shared].join("\n");
}

const codes = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(", ");

function at(spec: Schema, path: string, name: string): Schema {
  const steps = [...(path === "" ? [] : path.split(".")), name];
  return steps.reduce((part, step) => part.properties![step]!, spec);
}
