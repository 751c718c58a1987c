/** Replaces the package whatwg-url for node-fetch: that package loads `punycode`, about which Node warns. */
export const { URL } = globalThis;
