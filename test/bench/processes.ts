import { spawn } from "node:child_process";

export interface Finished {
  stdout: string;
  status: number;
  seconds: number;
}

/** Runs a command to its end and shows its stderr. @throws Error if its exit status is not 0 */
export async function finished(file: string, args: string[], env: NodeJS.ProcessEnv = {}): Promise<Finished> {
  const start = performance.now();
  const child = spawn(file, args, { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, ...env } });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  const status = await new Promise<number>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve(code ?? (signal === null ? -1 : 128)));
  });
  const stdout = Buffer.concat(chunks).toString();
  if (status !== 0) throw new Error(`${file} ${args.join(" ")} exited with ${status}\n${stdout}`);
  return { stdout, status, seconds: (performance.now() - start) / 1000 };
}
