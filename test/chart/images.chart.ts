/** `npm run test:chart`: hadolint's word on the Dockerfile; every image of it says whether it is healthy, and what it asks tells a server that is from one that is not. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { METRICS_PORT } from "../../controller/desired/names.ts";
import { hadolint } from "./hadolint.ts";
import { ROOT } from "./helm.ts";

interface Stage {
  name: string;
  from: string;
  instructions: string[];
}

function readStages(): Map<string, Stage> {
  const text = readFileSync(join(ROOT, "Dockerfile"), "utf8").replace(/\\\n/g, " ");
  const stages = [...text.matchAll(/^FROM (\S+) AS (\S+)\n([\s\S]*?)(?=^FROM |$(?![\s\S]))/gm)];
  return new Map(
    stages.map(([, from, name, body]) => [name!, { name: name!, from: from!, instructions: body!.split("\n") }]),
  );
}

const STAGES = readStages();
const IMAGES = ["controller", "learner", "learner-cuda", "actor", "sandbox", "sandbox-paper"];

/** Its own, or that of the stage that it starts from, as Docker has it. */
function healthCheckOf(name: string): string[] | undefined {
  const stage = STAGES.get(name);
  const line = stage?.instructions.findLast((it) => it.startsWith("HEALTHCHECK "));
  if (line) return JSON.parse(/ CMD (\[.*\])$/.exec(line)![1]!);
  return stage && healthCheckOf(stage.from);
}

test("hadolint finds nothing in the Dockerfile", async (context) => {
  const found = await hadolint(join(ROOT, "Dockerfile"));
  if ("missing" in found) return context.skip(found.missing);
  assert.equal(found.findings, "");
});

describe("HEALTHCHECK", () => {
  let code = 200;
  const server = createServer((_, answer) => answer.writeHead(code).end());
  before(() => once(server.listen(0, "127.0.0.1"), "listening"));
  after(() => server.close());

  const statusOf = async ([command, ...args]: string[], port: number): Promise<number> => {
    const asked = args.map((arg) => arg.replace(/127\.0\.0\.1:\d+/, `127.0.0.1:${port}`));
    const [status] = await once(spawn(command!, asked, { stdio: "ignore" }), "exit");
    return status;
  };

  for (const image of IMAGES)
    test(image, async () => {
      const check = healthCheckOf(image);
      assert.ok(check, "it has one");
      if (image.startsWith("sandbox")) return assert.deepEqual(check, ["test", "-S", "/sandbox/control.sock"]);
      const asked = /127\.0\.0\.1:(\d+)/.exec(check.join(" "))?.[1];
      assert.equal(Number(asked), image === "controller" ? 8080 : METRICS_PORT);
      const { port } = server.address() as AddressInfo;
      code = 200;
      assert.equal(await statusOf(check, port), 0);
      code = 503;
      assert.equal(await statusOf(check, port), 1);
      assert.equal(await statusOf(check, 1), 1, "nobody listens");
    });
});
