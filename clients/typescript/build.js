/**
 * Compiles `src` into `dist` with the pinned TypeScript, and notes what it was built from.
 *
 * `dist` is checked in: the client can be used, and tested, where there is a Node and no compiler. The note lets a test
 * find a `dist` that is not of these sources without compiling them.
 */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = dirname(fileURLToPath(import.meta.url));
const DIST = join(ROOT, "dist");
export const NOTE = "built.json";

/** The SHA-256 of a folder's files, their names included, and of some more texts. */
export function digestOf(folder, more = []) {
  const hash = createHash("sha256");
  for (const name of readdirSync(folder).sort()) {
    if (name !== NOTE) hash.update(`${name}\0${readFileSync(join(folder, name), "utf8")}\0`);
  }
  for (const text of more) hash.update(`${text}\0`);
  return hash.digest("hex");
}

/** What there is now, as the note has it. */
export function present() {
  const typescript = pinned();
  const settings = readFileSync(join(ROOT, "tsconfig.json"), "utf8");
  return { typescript, sources: digestOf(join(ROOT, "src"), [settings]), output: digestOf(DIST) };
}

function pinned() {
  return JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).devDependencies.typescript;
}

/** The path of the pinned compiler's program; undefined where it is not installed. */
export function compiler() {
  try {
    const found = createRequire(import.meta.url).resolve("typescript/package.json");
    const { version, bin } = JSON.parse(readFileSync(found, "utf8"));
    return version === pinned() ? join(dirname(found), bin.tsc) : undefined;
  } catch (error) {
    if (error.code === "MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}

/** Compile into a folder. */
export function compile(folder) {
  const program = compiler();
  if (program === undefined) throw new Error("The pinned TypeScript is not installed: run `npm install` first.");
  execFileSync(process.execPath, [program, "--project", join(ROOT, "tsconfig.json"), "--outDir", folder], {
    stdio: "inherit",
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  rmSync(DIST, { recursive: true, force: true });
  compile(DIST);
  writeFileSync(join(DIST, NOTE), `${JSON.stringify(present(), undefined, 2)}\n`);
}
