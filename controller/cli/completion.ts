/**
 * `longrun completion bash|zsh|fish`: scripts that complete commands, their options, and files. A script contains the whole table of
 * commands, so that Tab starts no longrun process.
 */
import type { Command } from "commander";
import { BUNDLED } from "../bundled.ts";
import { PART_COMMANDS } from "./part-commands.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** Kind of a word: a bundled task or a task folder, a bundled policy or a model folder, a run folder, a file. */
const KINDS = ["task", "model", "run", "file"] as const;
type Kind = (typeof KINDS)[number];

const VALUES: Record<string, Kind> = {
  "--task": "task",
  "--model": "model",
  "--resume": "run",
  "--run": "run",
  "--table": "run",
  "--from": "file",
  "--out": "file",
};
const ARGUMENTS: Record<string, Kind> = {
  best: "run",
  debug: "run",
  prepare: "task",
  report: "run",
  results: "run",
  samples: "run",
  task: "task",
};

interface Completed {
  name: string;
  description: string;
  /** Possible first words. */
  first: readonly string[];
  options: string[];
  /** Kind of the arguments, if they are not files. */
  kind?: Kind;
  /** A command without arguments offers its options at once; other commands after a dash. */
  onlyOptions: boolean;
}

/** Returns the script of a shell for every command of `program`. */
export function completionScript(shell: Shell, program: Command): string {
  const commands = program.commands.map(completed);
  return { bash, zsh, fish }[shell](commands);
}

function completed(command: Command): Completed {
  const name = command.name();
  const description = command.description().replaceAll("'", "\\'").replaceAll("\n", " ");
  const part = PART_COMMANDS[name];
  const options = part?.options ?? command.options.filter(({ hidden }) => !hidden).map(({ long }) => long!);
  const first = part ? (part.words ?? []) : command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  const kind = ARGUMENTS[name];
  const onlyOptions = part ? !part.words && !kind : command.registeredArguments.length === 0;
  return { name, description, first, options: [...options, "--help"], kind, onlyOptions };
}

const names = (commands: Completed[]) => ["help", ...commands.map(({ name }) => name)].join(" ");

/** Returns the options whose value has a kind, as patterns of `case`. */
const valuesOf = (kind: Kind) =>
  Object.keys(VALUES)
    .filter((option) => VALUES[option] === kind)
    .join("|");

/** Returns the `case` of bash and zsh that sets the words of a command and the kind of its arguments. */
const cases = (commands: Completed[]): string =>
  commands
    .map(
      ({ name, first, options, kind, onlyOptions }) =>
        `    ${name}) first='${first.join(" ")}' options='${options.join(" ")}' kind=${kind ?? (onlyOptions ? "options" : "file")} ;;\n`,
    )
    .join("");

/** Returns the `case` of bash and zsh that completes the value of an option, which is no argument. */
const VALUE_CASES = KINDS.map((kind) => `    ${valuesOf(kind)}) first='' options='' kind=${kind} ;;\n`).join("");

const bash = (commands: Completed[]): string => `# bash: source <(longrun completion bash)
_longrun() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} first='' options='' kind=file words=''
  case \${COMP_WORDS[1]} in
${cases(commands)}    help) first='${names(commands)}' ;;
  esac
  case $before in
${VALUE_CASES}  esac
  if [ "$COMP_CWORD" = 1 ]; then words='${names(commands)}'
  elif [ "$COMP_CWORD" = 2 ] && [ -n "$first" ]; then words=$first
  elif [[ $word == -* || $kind == options && $before != --* ]]; then words=$options
  else
    case $kind in
      task) words='${BUNDLED.tasks.join(" ")}' ;;
      model) words='${BUNDLED.policies.join(" ")}' ;;
      run) words=$(compgen -G 'runs/*/trainingrun.yaml'); words=\${words///trainingrun.yaml/} ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  if [[ $kind == @(task|model) && $word != -* && ( -z $first || $COMP_CWORD -gt 2 ) ]]; then
    # Readline adds a slash to every candidate that is a folder, so only where all of them are.
    [ \${#COMPREPLY[@]} = 0 ] && compopt -o filenames 2>/dev/null
    COMPREPLY+=($(compgen -d -- "$word"))
  fi
}
complete -o default -F _longrun longrun
`;

const zsh = (commands: Completed[]): string => `#compdef longrun
# zsh: longrun completion zsh > a file _longrun in a folder of fpath
_longrun() {
  local first='' options='' kind=file
  local -a runs
  case $words[2] in
${cases(commands)}    help) first='${names(commands)}' ;;
  esac
  case $words[CURRENT-1] in
${VALUE_CASES}  esac
  if (( CURRENT == 2 )); then compadd -- ${names(commands)}
  elif (( CURRENT == 3 )) && [[ -n $first ]]; then compadd -- \${=first}
  elif [[ $PREFIX == -* || $kind == options && $words[CURRENT-1] != --* ]]; then compadd -- \${=options}
  else
    case $kind in
      task) compadd -- ${BUNDLED.tasks.join(" ")}; _files -/ ;;
      model) compadd -- ${BUNDLED.policies.join(" ")}; _files -/ ;;
      run) runs=(runs/*/trainingrun.yaml(N:h)); compadd -- $runs; (( $#runs )) || _files -/ ;;
      *) _files ;;
    esac
  fi
}
if [ "$funcstack[1]" = _longrun ]; then _longrun "$@"; else compdef _longrun longrun; fi
`;

const fish = (
  commands: Completed[],
): string => `# fish: longrun completion fish > ~/.config/fish/completions/longrun.fish
function __longrun_is; set -l typed (commandline -opc); test "$typed[2]" = $argv[1]; end
function __longrun_value; string match -q -- '--*' (commandline -opc)[-1]; end
function __longrun_first; test (count (commandline -opc)) = 2; end
function __longrun_run; for file in runs/*/trainingrun.yaml; path dirname $file; end; end
function __longrun_task; printf '%s\n' ${BUNDLED.tasks.join(" ")}; __fish_complete_directories (commandline -ct) ''; end
function __longrun_model; printf '%s\n' ${BUNDLED.policies.join(" ")}; __fish_complete_directories (commandline -ct) ''; end
complete -c longrun -n __fish_use_subcommand -f -a help -d 'show the options of a command, with examples'
complete -c longrun -n '__longrun_is help; and __longrun_first' -f -a '${names(commands)}'
${commands.map(fishCommand).join("")}`;

function fishCommand({ name, description, first, options, kind, onlyOptions }: Completed): string {
  const when = `complete -c longrun -n '__longrun_is ${name}`;
  return [
    `complete -c longrun -n __fish_use_subcommand -f -a ${name} -d '${description}'`,
    ...(first.length > 0 ? [`${when}; and __longrun_first' -f -a '${first.join(" ")}'`] : []),
    ...(kind ? [`${when}${first.length > 0 ? "; and not __longrun_first" : ""}' -f -a '(__longrun_${kind})'`] : []),
    ...(onlyOptions ? [`${when}; and not __longrun_value' -f`] : []),
    ...options.map((option) => `${when}' -l ${option.slice(2)}${fishValue(VALUES[option])}`),
    "",
  ].join("\n");
}

function fishValue(kind: Kind | undefined): string {
  if (kind === undefined) return "";
  return kind === "file" ? " -r -F" : ` -x -a '(__longrun_${kind})'`;
}
