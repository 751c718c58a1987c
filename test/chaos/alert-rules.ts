/** The chart's alert rules for runs of minutes, and how Prometheus finds the parts of a run on the node. */
import { readdirSync, readFileSync } from "node:fs";
import { parse } from "yaml";
import { CHART } from "../../charts/observability/generate.ts";

/** All durations of the alerts and of the chart's scrapes are divided by it: 15 minutes become 90 s. */
export const FACTOR = 10;
/** values.yaml: metrics.podMonitor.interval and metrics.serviceMonitor.interval; rules are evaluated as often. */
export const SCRAPE_SECONDS = 30 / FACTOR;

const UNIT_SECONDS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 };

interface Rule {
  alert: string;
  expr: string;
  for?: string;
  labels: Record<string, string>;
}
interface RuleFile {
  groups: { name: string; rules: Rule[] }[];
}

/** Returns the chart's rules with divided durations: `for`, ranges, and the seconds of an hour and of a day in expressions. */
export function dividedRules(): RuleFile {
  const groups = readdirSync(`${CHART}alerts`)
    .flatMap((file) => (parse(readFileSync(`${CHART}alerts/${file}`, "utf8")) as RuleFile).groups)
    .map(({ name, rules }) => ({ name, rules: rules.map(divided) }));
  return { groups };
}

function divided({ alert, expr, for: wait, labels }: Rule): Rule {
  const ranges = expr.replace(/\[(\w+)\]/g, (_, range) => `[${seconds(range) / FACTOR}s]`);
  const divided = ranges.replace(/\b(3600|86400)\b/g, (number) => String(Number(number) / FACTOR));
  return { alert, expr: divided, ...(wait && { for: `${seconds(wait) / FACTOR}s` }), labels };
}

/** Returns the seconds of `15m`; of undefined, 0. */
export function seconds(duration = "0s"): number {
  const [, count, unit] = /^(\d+)([smhd])$/.exec(duration) ?? [];
  if (unit === undefined) throw new Error(`the duration ${duration} is no number with s, m, h or d`);
  return Number(count) * UNIT_SECONDS[unit]!;
}

/** Returns a scrape that finds pods by the API server; labels and relabelings as in charts/longrun/templates/metrics.yaml. */
export function podScrape(kubeconfig: string, namespace: string, components: readonly string[]): object {
  const label = (name: string, targetLabel: string) => ({
    source_labels: [`__meta_kubernetes_${name}`],
    target_label: targetLabel,
  });
  const keep = (name: string, regex: string) => ({
    action: "keep",
    source_labels: [`__meta_kubernetes_${name}`],
    regex,
  });
  const isController = components.includes("controller");
  return {
    job_name: components.join("-"),
    honor_labels: isController,
    kubernetes_sd_configs: [{ role: "pod", kubeconfig_file: kubeconfig, namespaces: { names: [namespace] } }],
    relabel_configs: [
      keep("pod_phase", "Pending|Running|Unknown"),
      keep("pod_label_app_kubernetes_io_component", components.join("|")),
      keep("pod_container_port_name", "metrics"),
      label("namespace", "namespace"),
      label("pod_name", "pod"),
      ...(isController ? [] : [label("pod_label_longrun_dev_run", "run")]),
    ],
  };
}
