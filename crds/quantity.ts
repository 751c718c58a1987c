/** Kubernetes' resource quantities: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/ */

const FACTORS: Record<string, number> = {
  "": 1,
  m: 1e-3,
  ...{ k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 },
};

const FORM = /^(\d+(?:\.\d+)?)([a-zA-Z]*)$/;

/** Returns whether `parseQuantity` can read the text. */
export function isQuantity(text: string): boolean {
  return FACTORS[FORM.exec(text)?.[2] ?? "?"] !== undefined;
}

/**
 * @param quantity a value that the CRD's patterns allow, e.g. `500m`, `4Gi` or 2
 * @returns its value in cores, bytes or pieces
 * @throws RangeError if it is no quantity
 */
export function parseQuantity(quantity: number | string): number {
  const match = FORM.exec(String(quantity));
  const factor = FACTORS[match?.[2] ?? "?"];
  if (!match || factor === undefined) throw new RangeError(`${quantity} is no quantity; write it as 500m, 2 or 4Gi`);
  // A division, because 0.001 is no exact binary fraction: 100m becomes 0.1.
  return factor < 1 ? Number(match[1]) / 1000 : Number(match[1]) * factor;
}
