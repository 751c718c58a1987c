/** What node-fetch gets in place of the package whatwg-url: that one loads `punycode`, about which Node warns. */
export const { URL } = globalThis;
