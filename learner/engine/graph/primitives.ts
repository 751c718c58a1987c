/**
 * The primitive operations, by subject. Each has its shape rule and its one gradient rule beside it; README.md has the
 * rules as a table.
 */
export { expand, reshape, sum, sumTo } from "./broadcasting.ts";
export * from "./elementwise.ts";
export type { Operand } from "./emit.ts";
export * from "./indexing.ts";
export * from "./layout.ts";
export * from "./products.ts";
export * from "./reductions.ts";
