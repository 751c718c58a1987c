/** Troubles that cut the network between two parts of a run on a node. */
import { ADDRESSES } from "../cluster/node-config.ts";
import { between, mend, type Strike } from "./node-place.ts";

/** Ends of the network's cuts, by the pods' components; `API` and `DNS` are addresses. */
export const CUTS: Record<string, readonly [one: string, other: string]> = {
  "learner - actor": ["actor", "learner"],
  "learner - generator": ["learner", "generator"],
  "controller - learner": ["controller", "learner"],
  "controller - API server": ["controller", "API"],
  "actor - DNS": ["actor", "DNS"],
  "node - API server": ["node", "API"],
};

/** Drops every packet between two parts for a while, in the node's network namespace. */
export function cut([one, other]: readonly [string, string]): Strike {
  return async ({ api, run, cluster }, random) => {
    const addresses = async (part: string): Promise<string[]> => {
      if (part === "API") return [ADDRESSES.machine];
      if (part === "DNS" || part === "node") return [ADDRESSES.node];
      return (await api.pods(run, part)).flatMap(({ status }) => (status?.podIP ? [status.podIP] : []));
    };
    const [from, to] = [await addresses(one), await addresses(other)];
    if (from.length === 0 || to.length === 0) return undefined;
    const pairs = from.flatMap((a) =>
      to.flatMap(
        (b) =>
          [
            [a, b],
            [b, a],
          ] as const,
      ),
    );
    const rules = pairs.flatMap(([a, b]) =>
      ["INPUT", "OUTPUT", "FORWARD"].map((chain) => [chain, "-s", a, "-d", b, "-j", "DROP"]),
    );
    const iptables = (action: string, rule: string[]) => cluster.inNode("iptables", ["-w", "10", action, ...rule]);
    const made: string[][] = [];
    try {
      for (const rule of rules) {
        await iptables("-I", rule);
        made.push(rule);
      }
      return `${from.length} and ${to.length} addresses for ${await between(random, 1, 45)}`;
    } finally {
      for (const rule of made) await mend(() => iptables("-D", rule));
    }
  };
}
