/** A request as bytes, taken once: what the caller changes afterwards reaches nothing. */

import { InvalidSchedule, type Fault } from "./errors.js";

/** The largest request, in bytes of UTF-8, that a server reads. */
export const MAX_DOCUMENT_BYTES = 256 * 1024;
/** How many objects and lists may stand inside one another. */
export const MAX_DEPTH = 64;
/** Faults that are told at once. */
const MAX_FAULTS = 200;

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** Stands for a document of which one fault is told alone. */
class Stop extends Error {
  readonly fault: Fault;

  constructor(fault: Fault) {
    super(fault.sentence);
    this.fault = fault;
  }
}

/**
 * The request as bytes of JSON. Every member is read once, and members that are undefined are left out.
 *
 * Throws `InvalidSchedule`, with all faults, for what is no JSON (a Date, a Map, a BigInt, NaN, undefined in a list, half
 * a character, an integer beyond ±(2^53 - 1), too deep) and for what no server reads: it refuses before all of it is
 * sent, and that answer may be lost.
 */
export function snapshot(request: unknown): Uint8Array {
  const copying = new Copying();
  let copy: Json;
  try {
    copy = copying.copy(request, "", 0);
  } catch (error) {
    if (error instanceof Stop) throw new InvalidSchedule([error.fault]);
    throw error;
  }
  if (copying.faults.length === 0 && (typeof copy !== "object" || copy === null || Array.isArray(copy))) {
    copying.faults.push({ pointer: "", code: "not_json", sentence: "A request is an object." });
  }
  if (copying.faults.length > 0) throw new InvalidSchedule(copying.faults);
  const content = new TextEncoder().encode(JSON.stringify(copy));
  if (content.length > MAX_DOCUMENT_BYTES) {
    const sentence = `The request has ${content.length} bytes; at most ${MAX_DOCUMENT_BYTES} are read.`;
    throw new InvalidSchedule([{ pointer: "", code: "too_large", sentence }]);
  }
  return content;
}

class Copying {
  readonly faults: Fault[] = [];
  private parts = 0;

  copy(value: unknown, at: string, depth: number): Json {
    this.parts += 1;
    if (this.parts > MAX_DOCUMENT_BYTES) {
      const sentence = `The request has more parts than ${MAX_DOCUMENT_BYTES} bytes of JSON can hold.`;
      throw new Stop({ pointer: "", code: "too_large", sentence });
    }
    if (typeof value === "string") return this.text(value, at);
    if (typeof value === "number") return this.number(value, at);
    if (value === null || typeof value === "boolean") return value;
    if (typeof value !== "object" || !(Array.isArray(value) || isPlain(value))) {
      return this.fault(at, "not_json", `JSON has no ${kindOf(value)}; write a text, a number, a list or an object.`);
    }
    if (depth >= MAX_DEPTH) {
      const sentence = `At most ${MAX_DEPTH} objects and lists stand inside one another.`;
      throw new Stop({ pointer: at, code: "too_deep", sentence });
    }
    return Array.isArray(value) ? this.list(value, at, depth) : this.members(value, at, depth);
  }

  private list(value: readonly unknown[], at: string, depth: number): Json {
    return Array.from(value, (each, index) => this.copy(each, `${at}/${index}`, depth + 1));
  }

  private members(value: object, at: string, depth: number): Json {
    // Without a prototype, so that a member named `__proto__` is one like any other.
    const copy: { [name: string]: Json } = Object.create(null);
    for (const [name, each] of Object.entries(value)) {
      if (each === undefined) continue;
      const here = `${at}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
      if (!name.isWellFormed()) {
        this.fault(here, "lone_surrogate", "The key holds half a character (a lone surrogate).");
        continue;
      }
      copy[name] = this.copy(each, here, depth + 1);
    }
    return copy;
  }

  private text(value: string, at: string): Json {
    if (value.isWellFormed()) return value;
    return this.fault(at, "lone_surrogate", "The text holds half a character (a lone surrogate).");
  }

  private number(value: number, at: string): Json {
    if (!Number.isFinite(value)) return this.fault(at, "not_a_number", `JSON has no ${value}; write a number.`);
    if (!Number.isInteger(value) || Number.isSafeInteger(value)) return value;
    const sentence = `An integer lies within ±(2^53 - 1), where all JSON programs agree; found ${value}.`;
    return this.fault(at, "integer_too_large", sentence);
  }

  private fault(pointer: string, code: string, sentence: string): null {
    if (this.faults.length < MAX_FAULTS) this.faults.push({ pointer, code, sentence });
    return null;
  }
}

/** Whether an object is one of members alone. Objects of another realm, as test runners make them, are plain too. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function kindOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return typeof value;
  const kind: unknown = value.constructor;
  return typeof kind === "function" && kind.name ? kind.name : "object of a class";
}
