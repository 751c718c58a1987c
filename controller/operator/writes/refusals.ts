/** Finds the reason why a child is not written, in the API server's answer or in the run, and the remedy. */
import { podTemplateProblems } from "../../../crds/trainingrun.ts";
import { GENERATORS, type Run } from "../desired/names.ts";
import { ApiError, isConflict } from "../kube/errors.ts";
import { DEFAULT_SIZE } from "../parts/volume/desired.ts";
import { oneLine, overLimit } from "../status/blockers.ts";
import type { Finding, Reason } from "../status/conditions.ts";

/** Returns the finding for a refused write; undefined if a retry is enough. */
export function writeBlocker(error: unknown, run: Run): Finding | undefined {
  if (error instanceof BlockedError) return { reason: error.reason, message: error.message };
  if (!(error instanceof ApiError) || isConflict(error)) return undefined;
  const text = oneLine(error.message);
  const limited =
    error.status === 403 && overLimit(text, /persistentvolumeclaims/.test(text) ? sizeOf(run) : undefined);
  if (limited) return limited;
  if (error.status === 403 && /being terminated/.test(text))
    return {
      reason: "Forbidden",
      message: `namespace ${run.metadata.namespace} is being deleted: no object can be created in it`,
    };
  if (error.status === 403)
    return {
      reason: "Forbidden",
      message: `${text}; grant it to the controller (manifests/install), or ask the owner of the admission policy`,
    };
  const schema = error.status === 500 ? SCHEMA_ERROR.exec(text) : null;
  if (schema) return schemaFault(schema.groups as never);
  if (error.status === 400 || error.status === 422)
    return { reason: "Refused", message: `${text}; change the field of the spec that the message names` };
  return undefined;
}

/** A size that the spec has cannot shrink. */
const sizeOf = ({ spec }: Run): string =>
  spec.learner.storage.size === undefined
    ? `spec.learner.storage.size (absent: ${DEFAULT_SIZE}, or what the learner asks for)`
    : "spec.learner.storage.size of a run that you create anew";

const CORRECT_FIELD = "correct that field in the run, or in its TrainingRuntime";

/** The answer of server-side apply to an object that its schema does not allow; it has status 500 and no reason. */
const SCHEMA_ERROR =
  /failed to create typed patch object \((?:[^/;]+\/)?(?<name>[^;]+); [^,]+, Kind=(?<kind>[^)]+)\): (?<path>\S+): (?<fault>.*)/;

function schemaFault({ name, kind, path, fault }: Record<"name" | "kind" | "path" | "fault", string>): Finding {
  // Only the podTemplate can bring such a fault into a Deployment.
  const part = name.endsWith(`-${GENERATORS}`) ? "generation" : "learner";
  const field = path.replace(/^\.spec\.template\./, `spec.${part}.podTemplate.`);
  return {
    reason: "Refused",
    message: `${kind} ${name} is refused: ${field}: ${fault}; ${CORRECT_FIELD}`,
  };
}

/**
 * Checks the allow-list of podTemplate, because the API server may have an older CRD and has not checked the runtime merged with the
 * run. A running learner continues.
 *
 * @param child the object that is not applied, such as `Deployment run-learner`
 * @throws BlockedError that names the fields
 */
export function checkPodTemplate({ spec }: Run, owner: "learner" | "actors", child: string): void {
  const problems = podTemplateProblems(owner, spec[owner].podTemplate);
  if (problems.length > 0)
    throw new BlockedError("Refused", `${child} is refused: ${problems.join("; ")}; ${CORRECT_FIELD}`);
}

/** A step waits for a person, or for the end of an object. */
export class BlockedError extends Error {
  override readonly name = "BlockedError";
  readonly reason: Reason;

  constructor(reason: Reason, message: string) {
    super(message);
    this.reason = reason;
  }
}
