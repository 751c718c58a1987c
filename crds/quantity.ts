/** Kubernetes' resource quantities: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/ */

const FACTORS: Record<string, number> = {
  "": 1,
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

const FORM = /^([+-]?\d*\.?\d+(?:[eE][+-]?\d+)?)([A-Za-z]*)$/;
/** Quantities that the CRD's patterns allow. */
const ALLOWED = /^\d+(?:\.\d+)?(?:m|[kMGTPE]|[KMGTPE]i)?$/;

/** Returns a value in cores, bytes or pieces, as the API server may return it: `500m`, `1Gi`, `2e3`; undefined for other text. */
export function readQuantity(text: string): number | undefined {
  const match = FORM.exec(text);
  const factor = FACTORS[match?.[2] ?? "?"];
  if (!match || factor === undefined) return undefined;
  // A division, because 0.001 is no exact binary fraction: 100m becomes 0.1.
  return factor < 1 ? Number(match[1]) / Math.round(1 / factor) : Number(match[1]) * factor;
}

/** Returns whether `parseQuantity` can read the text. */
export function isQuantity(text: string): boolean {
  return ALLOWED.test(text);
}

/**
 * @param quantity a value that the CRD's patterns allow, e.g. `500m`, `4Gi` or 2
 * @returns its value in cores, bytes or pieces
 * @throws RangeError if it is no quantity
 */
export function parseQuantity(quantity: number | string): number {
  const text = String(quantity);
  if (!isQuantity(text)) throw new RangeError(`${quantity} is no quantity; write it as 500m, 2 or 4Gi`);
  return readQuantity(text)!;
}
