/** Generators on other machines without Kubernetes: the learner's arguments, and the certificates of both sides. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { createAuthority, createCertificate, type Role, writeTlsFiles } from "../../proto/certificates.ts";
import type { Values } from "../../proto/command-line.ts";
import { checkFolder } from "../../proto/folders.ts";
import { ControllerError } from "../errors.ts";
import type { CERTIFICATES, RunOptions } from "./options.ts";

const DAY_SECONDS = 24 * 3600;

/** Returns the learner's arguments. @throws ControllerError `input` */
export function generatorArguments({
  generators,
  generatorsTls,
}: Pick<RunOptions, "generators" | "generatorsTls">): string[] {
  if (generators === undefined && generatorsTls === undefined) return [];
  const make = "longrun certificates makes them";
  if (generators === undefined)
    throw new ControllerError("input", `--generators-tls ${generatorsTls}: of which generators? give --generators URL`);
  const urls = generators.split(",").map((url) => url.trim());
  const isUrl = (url: string) => URL.parse(url)?.protocol === "https:";
  if (!urls.some(isUrl) || !urls.every((url) => url === "" || isUrl(url)))
    throw new ControllerError("input", `--generators is "${generators}": give https://HOST:PORT[,…], or leave it out`);
  if (generatorsTls === undefined)
    throw new ControllerError(
      "input",
      `--generators ${generators}: give --generators-tls DIR, the learner's certificate for them; ${make}`,
    );
  if (!existsSync(join(generatorsTls, "tls.crt")))
    throw new ControllerError("input", `--generators-tls ${generatorsTls}: there is no tls.crt in it; ${make}`);
  return ["--generators", generators, "--generators-tls", resolve(generatorsTls)];
}

/** Makes `out/learner` and `out/generator`, each a folder for `--tls`. The authority's key is kept nowhere. @throws ControllerError `input` */
export async function writeGeneratorCertificates(options: Values<typeof CERTIFICATES.options>): Promise<void> {
  const { out, hosts, days } = options;
  if (existsSync(out))
    throw new ControllerError("input", `--out ${out} exists already; name a new folder, or remove it`);
  checkFolder(out, "--out");
  const names = hosts.split(",").filter((host) => host !== "");
  const validity = { validSeconds: days * DAY_SECONDS };
  const authority = await createAuthority(validity, "longrun generators");
  const write = async (role: Role, of: string[]) =>
    writeTlsFiles(join(out, role), await createCertificate(authority, { ...validity, role, name: role, hosts: of }));
  await write("learner", ["localhost"]);
  await write("generator", names);
  process.stdout.write(`${join(out, "learner")}: for longrun run --generators-tls\n`);
  process.stdout.write(
    `${join(out, "generator")}: for longrun serve --tls on ${names.join(", ")}, valid for ${days} days\n`,
  );
}
