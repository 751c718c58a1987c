/** Options that several commands of the command line have. */
import { Option } from "commander";

/** Returns an option that collects its values. @param none says in the help what holds without the option */
export function repeated(flags: string, description: string, none: string): Option {
  const collect = (value: string, previous: string[]): string[] => [...previous, value];
  return new Option(flags, description).argParser(collect).default([], none);
}

export function verboseOption(): Option {
  return new Option("--verbose", "show the processes' logs").default(false);
}

export function listenOption(): Option {
  return new Option("--listen <HOST:PORT>", "where the learner serves actors; port 0 is any free one").default(
    "127.0.0.1:0",
  );
}

export function metricsListenOption(): Option {
  return new Option(
    "--metrics-listen <HOST:PORT>",
    "where the learner serves its report (/report) and Prometheus metrics; actors at the ports after it",
  ).default("127.0.0.1:0");
}

export function setOption(): Option {
  return repeated("--set <PATH=VALUE>", "change a field, e.g. stopping.iterations=2; may be repeated", "none");
}

export function kubeconfigOption(): Option {
  return new Option(
    "--kubeconfig <FILE>",
    "how to reach the cluster (default: the pod's own account, else as kubectl)",
  );
}

export function pythonOption(): Option {
  return new Option("--python <PYTHON>", "interpreter for the programs' environment (default: python3)");
}

export function packagesOption(): Option {
  return new Option("--packages <SET>", "packages of that environment, like actors.packages").choices([
    "Basic",
    "Paper",
  ]);
}
