import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { checkFree, parseAddress } from "./address.ts";

test("parseAddress names the option and the form", () => {
  assert.deepEqual(parseAddress(":7000", "--listen"), { port: 7000 });
  const message = /^--listen 7000: write HOST:PORT, .* or :PORT for every address/;
  assert.throws(() => parseAddress("7000", "--listen"), { code: "input", message });
});

test("checkFree finds a port that is in use", async () => {
  await using server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await assert.rejects(checkFree({ host: "127.0.0.1", port }, "--listen"), {
    code: "input",
    message: `--listen 127.0.0.1:${port}: the port is in use; choose another one, or 0 for any free one`,
  });
  await new Promise((resolve) => server.close(resolve));
  await checkFree({ host: "127.0.0.1", port }, "--listen");
});
