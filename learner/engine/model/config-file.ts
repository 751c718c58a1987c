import { ModelError } from "./errors.ts";

/** A JSON object whose fields are read by name. Errors name the field's path, its value and the remedy. */
export class ConfigFile {
  readonly #json: Record<string, unknown>;
  readonly #source: string;
  readonly #path: string;

  /** @param source name of the file in errors */
  constructor(json: unknown, source: string, path = "") {
    if (typeof json !== "object" || json === null || Array.isArray(json)) {
      throw new ModelError("config", `${source}: expected a JSON object, got ${describe(json)}`);
    }
    this.#json = json as Record<string, unknown>;
    this.#source = source;
    this.#path = path;
  }

  /** null counts as left out, as it does in transformers. */
  value(field: string): unknown {
    return this.#json[field] ?? undefined;
  }

  present(field: string): boolean {
    return this.value(field) !== undefined;
  }

  refuse(field: string, remedy: string, value: unknown = this.#json[field]): never {
    throw new ModelError("config", `${this.#source}: ${this.#path}${field} is ${describe(value)}; ${remedy}`);
  }

  count(field: string, fallback?: number, most = Number.MAX_SAFE_INTEGER): number {
    const value = this.value(field) ?? fallback;
    if (!Number.isSafeInteger(value) || (value as number) <= 0) this.refuse(field, "expected a positive whole number");
    if ((value as number) > most) this.refuse(field, `expected at most ${most}`);
    return value as number;
  }

  positive(field: string, fallback?: number): number {
    const value = this.value(field) ?? fallback;
    if (typeof value === "number" && Number.isFinite(value) && value > 0) return value;
    return this.refuse(field, "expected a positive number");
  }

  boolean(field: string, fallback: boolean): boolean {
    const value = this.value(field) ?? fallback;
    return typeof value === "boolean" ? value : this.refuse(field, "expected true or false");
  }

  /** Returns the fields of an object; none if it is left out. */
  object(field: string): ConfigFile {
    const value = this.value(field) ?? {};
    if (typeof value !== "object" || Array.isArray(value)) return this.refuse(field, "expected an object");
    return new ConfigFile(value, this.#source, `${this.#path}${field}.`);
  }

  /** Refuses a field whose value is not `allowed`. */
  allow(field: string, allowed: readonly unknown[], remedy: string): void {
    const value = this.value(field);
    if (value !== undefined && !allowed.includes(value)) this.refuse(field, remedy);
  }
}

function describe(value: unknown): string {
  const text = JSON.stringify(value) ?? "missing";
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
