/** Tests `longrun completion` in real shells: what Tab offers after a line. A shell that is not installed is named as skipped. */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { parse } from "yaml";
import { BUNDLED } from "../../controller/bundled.ts";
import { commandsOf } from "../../controller/cli/commands.ts";
import { completionScript, SHELLS, type Shell } from "../../controller/cli/completion.ts";
import { PARTS } from "../../controller/parts.ts";
import { missingTools } from "../tools.ts";

const ROOT = join(import.meta.dirname, "../..");
const commands = commandsOf(PARTS).map(({ command }) => command);
const folder = mkdtempSync(join(tmpdir(), "longrun-completion-"));
before(() => {
  for (const name of ["runs/a", "runs/b", "my-task"]) mkdirSync(join(folder, name), { recursive: true });
  for (const name of ["runs/a/trainingrun.yaml", "runs/b/trainingrun.yaml", "houses.csv"])
    writeFileSync(join(folder, name), "");
  for (const shell of SHELLS) writeFileSync(join(folder, `.${shell}`), completionScript(shell, commands));
});
after(() => rmSync(folder, { recursive: true }));

/** Each prints what Tab offers for the line in `$LINE`, one candidate a line. */
const TAB: Record<Shell, string> = {
  bash: `source .bash
    read -ra COMP_WORDS <<< "$LINE"; [[ $LINE == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _longrun
    # With -o default, readline offers files where the function offers nothing.
    [ \${#COMPREPLY[@]} = 0 ] && COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
    printf '%s\\n' "\${COMPREPLY[@]}"`,
  fish: `source .fish; complete -C "$LINE" | string replace -r '\\t.*' ''; true`,
  // Only a terminal has zsh's completion: a second zsh in a pseudo-terminal presses Tab. There compadd prints its words.
  zsh: `zmodload zsh/zpty
    zpty tab zsh -f -i
    zpty -w tab 'PS1=; autoload -U compinit; compinit -u; source .zsh; unsetopt zle_bracketed_paste; stty -echo
      compadd() {
        if [[ \${argv[(r)-[OAD]]} ]]; then builtin compadd "$@"; return; fi
        local -a hits; builtin compadd -A hits "$@"
        (( $#hits )) && print -rl -- "<"$^hits">"; builtin compadd "$@"
      }
      finish() { print "<""END>"; exit }
      zle -C complete-all complete-word _main_complete; bindkey "^I" complete-all; zle -N finish; bindkey "^G" finish
      print "<""READY>"'
    zpty -r tab seen '*<READY>*'
    zpty -w -n tab "$LINE"$'\\t\\C-g'
    zpty -r tab seen '*<END>*'
    print -r -- "$seen" | grep -o '<[^<>]*>' | tr -d '<>' | grep -v '^END$'`,
};

const OFFERED: [line: string, candidates: string[]][] = [
  ["longrun pre", ["prepare", "pretrain"]],
  ["longrun help sa", ["samples"]],
  ["longrun run --re", ["--replay", "--resume"]],
  ["longrun run ho", ["houses.csv"]],
  ["longrun run --task ", ["diamonds", "movie", "my-task", "runs", "wage"]],
  ["longrun run --task my", ["my-task"]],
  ["longrun run --model q", ["quickstart"]],
  ["longrun run --resume ", ["runs/a", "runs/b"]],
  ["longrun best ", ["runs/a", "runs/b"]],
  ["longrun samples runs/b --s", ["--show"]],
  ["longrun evaluate --run runs/b", ["runs/b"]],
  ["longrun prepare d", ["diamonds"]],
  ["longrun task ", ["check", "drop", "generate", "init", "prompt"]],
  ["longrun task check ", ["diamonds", "movie", "my-task", "runs", "wage"]],
  ["longrun task check w", ["wage"]],
  ["longrun task init mine --from h", ["houses.csv"]],
  ["longrun model i", ["info"]],
  ["longrun results push ", ["runs/a", "runs/b"]],
  ["longrun completion ", ["bash", "fish", "zsh"]],
  ["longrun serve --no", ["--no-key"]],
  ["longrun serve --adapter m", ["my-task"]],
  ["longrun controller --kubeconfig ho", ["houses.csv"]],
  ["longrun grade --submission ho", ["houses.csv"]],
  ["longrun generate --prompts ho", ["houses.csv"]],
];

describe("longrun completion", { concurrency: 2 }, () => {
  for (const shell of SHELLS) {
    const installed = spawnSync(shell, ["-c", "true"]).error === undefined;
    for (const [line, candidates] of OFFERED)
      test(`${shell} completes ${line}<Tab>`, {
        skip: !installed && `${shell} is not installed`,
        timeout: 30_000,
      }, async () => {
        const env = { ...process.env, LINE: line, HOME: folder, TERM: "dumb" };
        const { stdout, stderr } = await promisify(execFile)(shell, ["-c", TAB[shell]], { cwd: folder, env });
        assert.equal(stderr, "");
        const offered = new Set(stdout.split(/\r?\n/).map((word) => word.replace(/\/$/, "")));
        offered.delete("");
        assert.deepEqual([...offered].sort(), candidates);
      });
  }

  test("bash completes a command as a word, although a folder has that name", {
    skip: missingTools(["bash"]),
  }, async () => {
    const options = { cwd: folder };
    const { stdout } = await promisify(execFile)("bash", ["-c", "source .bash; complete -p longrun"], options);
    assert.equal(stdout, "complete -o default -F _longrun longrun\n");
  });

  test("An unknown shell is bad input", async () => {
    const longrun = promisify(execFile)(process.execPath, [join(ROOT, "controller/cli.ts"), "completion", "tcsh"]);
    await assert.rejects(longrun, { code: 2, stderr: /Allowed choices are bash, zsh, fish/ } as never);
  });
});

test("Tab offers the names of the bundled tasks and policies", () => {
  const registry = parse(readFileSync(join(ROOT, "learner/tasks/registry.yaml"), "utf8")) as { tasks?: object };
  assert.deepEqual([...BUNDLED.tasks], Object.keys(registry.tasks ?? registry).sort());
  assert.deepEqual(
    [...BUNDLED.policies],
    globSync("*/policy", { cwd: join(ROOT, "manifests") }).map((path) => path.split("/")[0]),
  );
});
