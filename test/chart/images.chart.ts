/**
 * `npm run test:chart`: runs hadolint on the Dockerfile. Every image must have a health check, and the check must distinguish a healthy
 * server from an unhealthy one.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { METRICS_PORT } from "../../controller/operator/desired/names.ts";
import { hadolint } from "./hadolint.ts";
import { ROOT } from "./helm.ts";

interface Stage {
  name: string;
  from: string;
  instructions: string[];
}

const TEXT = readFileSync(join(ROOT, "Dockerfile"), "utf8").replace(/\\\n/g, " ");
/** Arguments before the first stage, with their defaults. */
const ARGS: Record<string, string> = Object.fromEntries(
  [...TEXT.split(/^FROM /m)[0]!.matchAll(/^ARG (\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
);

function readStages(): Map<string, Stage> {
  const stages = [...TEXT.matchAll(/^FROM (?:--platform=\S+ )?(\S+) AS (\S+)\n([\s\S]*?)(?=^FROM |$(?![\s\S]))/gm)];
  return new Map(
    stages.map(([, from, name, body]) => [name!, { name: name!, from: from!, instructions: body!.split("\n") }]),
  );
}

const STAGES = readStages();
const IMAGES = ["controller", "learner", "learner-cuda", "actor", "sandbox", "sandbox-paper"];

/** Returns the stage's own health check, or the one of the stage that it starts from, as Docker does. */
function healthCheckOf(name: string): string[] | undefined {
  const stage = STAGES.get(name);
  const line = stage?.instructions.findLast((it) => it.startsWith("HEALTHCHECK "));
  if (line) return JSON.parse(/ CMD (\[.*\])$/.exec(line)![1]!);
  return stage && healthCheckOf(stage.from);
}

test("hadolint accepts the Dockerfile", async (context) => {
  const found = await hadolint(join(ROOT, "Dockerfile"));
  if ("missing" in found) return context.skip(found.missing);
  assert.equal(found.findings, "");
});

describe("The HEALTHCHECK of an image", () => {
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
      assert.ok(check, "the image has a health check");
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

/** Returns the stage's labels, with the labels of the stages that it starts from. */
function labelsOf(name: string): Record<string, string> {
  const stage = STAGES.get(name);
  if (!stage) return {};
  const own = stage.instructions.filter((it) => it.startsWith("LABEL ")).join(" ");
  const labels = [...own.matchAll(/(\S+?)="([^"]*)"/g)].map(([, label, value]) => [label!, expand(value!, stage)]);
  return { ...labelsOf(stage.from), ...Object.fromEntries(labels) };
}

/** An argument has its default if the stage declares it, and is empty otherwise. */
function expand(text: string, { instructions }: Stage): string {
  return text.replace(/\$\{?([A-Z_]+)\}?/g, (_, name) => (instructions.includes(`ARG ${name}`) ? ARGS[name]! : ""));
}

describe("The OCI labels of an image", () => {
  const PREFIX = "org.opencontainers.image.";
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  for (const image of IMAGES)
    test(image, () => {
      const labels = labelsOf(image);
      const of = (name: string) => labels[PREFIX + name];
      assert.match(of("title")!, new RegExp(`^longrun ${image.split("-")[0]}\\b`));
      assert.ok(of("description"));
      assert.deepEqual([of("licenses"), of("version"), of("revision")], ["Apache-2.0", version, "unknown"]);
      assert.match(of("base.name")!, /^docker\.io\/library\/debian:[\w-]+$/);
      assert.match(of("base.digest")!, /^sha256:[a-f0-9]{64}$/);
      assert.equal(of("source"), undefined, "the project has no public address");
    });

  test("The labels name the base image that the Dockerfile builds from", () => {
    assert.match(ARGS.DEBIAN_IMAGE!, /^\$\{DEBIAN_NAME\}@\$\{DEBIAN_DIGEST\}$/);
    assert.match(STAGES.get("debian")!.from, /^\$\{DEBIAN_IMAGE\}$/);
    for (const stage of ["service", "python"]) assert.equal(STAGES.get(stage)!.from, "debian");
  });
});
