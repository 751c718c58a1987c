/**
 * Builds the images for amd64 and arm64, pushes them, then the Helm chart with their digests, and signs all:
 *
 *     npm run release -- --registry registry.example.com/ml --key cosign.key
 *
 * Prints NAME@DIGEST of each. It needs buildah, and QEMU for the other architecture; helm and cosign come from PATH or are built once
 * (test/cluster/binaries.ts). Credentials for the registry come from `buildah login`, `helm registry login` and `cosign login`. Exit
 * status: 1 if an image could not be built, 2 for wrong options.
 */
import { parseArgs } from "node:util";
import { type Architecture, missingEmulation } from "../e2e/emulation.ts";
import { IMAGES, type Image, release } from "./release.ts";

const USAGE = `usage: npm run release -- --registry HOST/REPOSITORY [options]

  --key FILE              cosign's private key, with COSIGN_PASSWORD; without it cosign signs with your OpenID identity
  --images NAME,…         default: controller,learner,actor,sandbox; there are ${Object.keys(IMAGES).join(", ")}
  --architectures NAME,…  default: amd64,arm64
  --overwrite             replace the version's images and chart where the registry has them, as after a release that failed halfway
  --local-bases           make the base images of Debian's and npm's packages, where Docker Hub cannot be reached
`;

try {
  const { values } = parseArgs({
    options: {
      registry: { type: "string" },
      key: { type: "string" },
      images: { type: "string", default: "controller,learner,actor,sandbox" },
      architectures: { type: "string", default: "amd64,arm64" },
      overwrite: { type: "boolean", default: false },
      "local-bases": { type: "boolean", default: false },
    },
  });
  const images = values.images.split(",");
  const architectures = values.architectures.split(",");
  for (const image of images) if (!Object.hasOwn(IMAGES, image)) refuse(`--images: there is no ${image}`);
  for (const one of architectures)
    if (one !== "amd64" && one !== "arm64") refuse(`--architectures: ${one} is neither amd64 nor arm64`);
  if (!/^[^/]+\/./.test(values.registry ?? ""))
    refuse("--registry HOST/REPOSITORY is missing, e.g. registry.example.com/ml");
  for (const one of architectures as Architecture[]) {
    const missing = missingEmulation(one);
    if (missing) throw new Error(`no images for ${one}: ${missing}`);
  }
  const { "local-bases": localBases, overwrite, registry, key } = values;
  const log = (line: string) => process.stderr.write(`${line}\n`);
  const made = await release({
    ...{ registry: registry!, key, localBases, overwrite, log },
    ...{ images: images as Image[], architectures: architectures as Architecture[] },
  });
  process.stdout.write(`${[...Object.values(made.images), ...(made.chart ? [made.chart] : [])].join("\n")}\n`);
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code?.startsWith("ERR_PARSE_ARGS")) refuse(message);
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

function refuse(why: string): never {
  process.stderr.write(`${why}\n${USAGE}`);
  process.exit(2);
}
