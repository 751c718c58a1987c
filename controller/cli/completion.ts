/**
 * `longrun completion bash|zsh|fish`: scripts that complete commands, their options, and files. A script contains the whole table of
 * commands, so that Tab starts no longrun process.
 */
import type { Command } from "../../proto/command-line.ts";
import { BUNDLED } from "../bundled.ts";
import { wordOf } from "../dispatch.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

export const COMPLETION = {
  name: "longrun completion",
  description: "print a script that completes commands and options in a shell",
  arguments: { "<SHELL>": SHELLS.join(", ") },
  choices: SHELLS,
  options: {},
  examples: [
    "source <(longrun completion bash)",
    "longrun completion zsh > ~/.zfunc/_longrun",
    "longrun completion fish > ~/.config/fish/completions/longrun.fish",
  ],
} as const;

/** Kind of a word: a bundled task or a task folder, a bundled policy or a model folder, a run folder, a file. */
const KINDS = ["task", "model", "run", "file"] as const;
type Kind = (typeof KINDS)[number];
const KIND_OF: Record<string, Kind> = { TASK: "task", MODEL: "model", RUN: "run", FILE: "file", DIR: "file" };

interface Completed {
  name: string;
  description: string;
  /** Possible first words. */
  first: readonly string[];
  /** With the kind of the value, if it has one. */
  options: Map<string, Kind | undefined>;
  /** Kind of the arguments, if they are not files. */
  kind?: Kind;
  /** A command without arguments offers its options at once; other commands after a dash. */
  onlyOptions: boolean;
}

/** Returns the script of a shell for every command. */
export function completionScript(shell: string, commands: readonly Command[]): string {
  return { bash, zsh, fish }[shell as Shell](commands.map(completed));
}

function completed(command: Command): Completed {
  const { commands = [command] } = command;
  const description = command.description.split("\n")[0]!.replaceAll("'", "\\'");
  const first = command.commands?.map(wordOf) ?? command.choices ?? [];
  const options = commands.flatMap((one) => Object.entries(one.options)).filter(([, { hidden }]) => !hidden);
  const kinds = options.map(([option, { value = "" }]) => [`--${option}`, KIND_OF[value]] as const);
  const places = commands.flatMap((one) => Object.keys(one.arguments ?? {}));
  const kind = places.map((place) => KIND_OF[/\w+/.exec(place)![0]]).find((found) => found && found !== "file");
  const onlyOptions = places.length === 0;
  return {
    name: wordOf(command),
    description,
    first,
    options: new Map([...kinds, ["--help", undefined]]),
    kind,
    onlyOptions,
  };
}

const names = (commands: Completed[]) => ["help", ...commands.map(({ name }) => name)].join(" ");

/** Returns the options whose value has a kind, as patterns of `case`. */
const valuesOf = (commands: Completed[], kind: Kind) =>
  [
    ...new Set(commands.flatMap(({ options }) => [...options.keys()].filter((option) => options.get(option) === kind))),
  ].join("|");

/** Returns the `case` of bash and zsh that sets the words of a command and the kind of its arguments. */
const cases = (commands: Completed[]): string =>
  commands
    .map(
      ({ name, first, options, kind, onlyOptions }) =>
        `    ${name}) first='${first.join(" ")}' options='${[...options.keys()].join(" ")}' kind=${kind ?? (onlyOptions ? "options" : "file")} ;;\n`,
    )
    .join("");

/** Returns the `case` of bash and zsh that completes the value of an option, which is no argument. */
const valueCases = (commands: Completed[]) =>
  KINDS.map((kind) => `    ${valuesOf(commands, kind)}) first='' options='' kind=${kind} ;;\n`).join("");

const bash = (commands: Completed[]): string => `# bash: source <(longrun completion bash)
_longrun() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} first='' options='' kind=file words=''
  case \${COMP_WORDS[1]} in
${cases(commands)}    help) first='${names(commands)}' ;;
  esac
  case $before in
${valueCases(commands)}  esac
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
${valueCases(commands)}  esac
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
    ...[...options].map(([option, value]) => `${when}' -l ${option.slice(2)}${fishValue(value)}`),
    "",
  ].join("\n");
}

function fishValue(kind: Kind | undefined): string {
  if (kind === undefined) return "";
  return kind === "file" ? " -r -F" : ` -x -a '(__longrun_${kind})'`;
}
