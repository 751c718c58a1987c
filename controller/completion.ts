/**
 * `longrun completion bash|zsh|fish`: scripts that complete commands, their options, and files. A script contains the whole table of
 * commands, so that Tab starts no longrun process.
 */
import type { Command } from "commander";
import { PART_COMMANDS } from "./part-commands.ts";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

interface Completed {
  name: string;
  description: string;
  /** Options, and possible first words. */
  words: string[];
}

/** Returns the script of a shell for every command of `program`. */
export function completionScript(shell: Shell, program: Command): string {
  const commands = program.commands.map(completed);
  return { bash, zsh, fish }[shell](commands);
}

function completed(command: Command): Completed {
  const name = command.name();
  const description = command.description().replaceAll(/['\n]/g, "");
  const part = PART_COMMANDS[name];
  const options = part?.options ?? command.options.filter(({ hidden }) => !hidden).map(({ long }) => long!);
  const choices = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  return { name, description, words: [...(part?.words ?? choices), ...options, "--help"] };
}

const names = (commands: Completed[]) => ["help", ...commands.map(({ name }) => name)].join(" ");

const bash = (commands: Completed[]): string => `# bash: source <(longrun completion bash)
_longrun() {
  local word=\${COMP_WORDS[COMP_CWORD]} words
  if [ "$COMP_CWORD" = 1 ]; then words='${names(commands)}'; else
    case \${COMP_WORDS[1]} in
${commands.map(({ name, words }) => `      ${name}) words='${words.join(" ")}' ;;\n`).join("")}      help) words='${names(commands)}' ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _longrun longrun
`;

const zsh = (commands: Completed[]): string => `#compdef longrun
# zsh: longrun completion zsh > a file _longrun in a folder of fpath
_longrun() {
  if (( CURRENT == 2 )); then compadd -- ${names(commands)}; return; fi
  case $words[2] in
${commands.map(({ name, words }) => `    ${name}) compadd -- ${words.join(" ")} ;;\n`).join("")}    help) compadd -- ${names(commands)} ;;
  esac
  _files
}
if [ "$funcstack[1]" = _longrun ]; then _longrun "$@"; else compdef _longrun longrun; fi
`;

const fish = (
  commands: Completed[],
): string => `# fish: longrun completion fish > ~/.config/fish/completions/longrun.fish
${commands.map(({ name, description }) => `complete -c longrun -n __fish_use_subcommand -f -a ${name} -d '${description}'\n`).join("")}${commands
  .flatMap(({ name, words }) => {
    const when = `complete -c longrun -n '__fish_seen_subcommand_from ${name}'`;
    return words.map((word) => `${when} ${word.startsWith("--") ? `-l ${word.slice(2)}` : `-a ${word}`}\n`);
  })
  .join("")}`;
