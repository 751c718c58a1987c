import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

const program = `
  import { createLog } from ${JSON.stringify(new URL("./log.ts", import.meta.url).href)};
  const log = createLog('learner');
  log.debug({ sample: 's1' }, 'kept');
  log.error({ err: new Error('broken') }, 'failed');
  process.exit(0);
`;

function logged(level: string) {
  const env = { ...process.env, LOG_LEVEL: level };
  return spawnSync(process.execPath, ["--input-type=module", "--eval", program], { env, encoding: "utf8" });
}

const cases: [level: string, messages: string[]][] = [
  ["", ["failed"]],
  ["debug", ["kept", "failed"]],
  ["error", ["failed"]],
  ["silent", []],
];

for (const [level, messages] of cases) {
  test(`the log with LOG_LEVEL '${level}' writes ${messages.length} JSON lines to stderr before the exit`, () => {
    const { stdout, stderr } = logged(level);
    assert.equal(stdout, "");
    const lines = stderr
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      lines.map(({ msg }) => msg),
      messages,
    );
    for (const line of lines) assert.ok(line.name === "learner" && !Number.isNaN(Date.parse(line.time)), stderr);
  });
}

test("an unknown LOG_LEVEL is refused in one line that names the levels", () => {
  const { status, stderr } = logged("loud");
  assert.equal(status, 1);
  assert.match(stderr, /LOG_LEVEL: loud is not a level; use one of trace, debug, info, warn, error, fatal, silent/);
});
