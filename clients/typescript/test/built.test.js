// What is checked in as built is what its sources become.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { compile, compiler, digestOf, NOTE, present } from "../build.js";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const skip =
  compiler() === undefined && "the pinned TypeScript is not installed: run `npm install` in clients/typescript";

test("dist is built from these sources and was not changed by hand", () => {
  const noted = JSON.parse(readFileSync(join(ROOT, "dist", NOTE), "utf8"));
  assert.deepEqual(noted, present(), "run `npm run build`");
});

test("the compiler writes the same dist again", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), "horarium-"));
  try {
    compile(folder);
    assert.equal(digestOf(folder), digestOf(join(ROOT, "dist")));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("it needs no package at run time", () => {
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  assert.deepEqual([dependencies, peerDependencies], [undefined, undefined]);
});
