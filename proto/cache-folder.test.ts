import assert from "node:assert/strict";
import { test } from "node:test";
import { cacheFolder } from "./cache-folder.ts";

test("the cache is in LONGRUN_CACHE, else in XDG_CACHE_HOME, else in ~/.cache", () => {
  assert.equal(cacheFolder({ LONGRUN_CACHE: "/a", XDG_CACHE_HOME: "/b" }), "/a");
  assert.equal(cacheFolder({ XDG_CACHE_HOME: "/b" }), "/b/longrun");
  assert.match(cacheFolder({}), /\.cache\/longrun$/);
});
