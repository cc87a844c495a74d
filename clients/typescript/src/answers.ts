/** What calls answer: documents as the server sent them, held against the shapes of the OpenAPI page. */

import { shapes, type Answers, type Receipt, type Reference } from "./api.js";
import { isObject, UnexpectedAnswer } from "./errors.js";

/**
 * A completed operation on a schedule. It confirms that one operation; the current activation may have changed afterwards.
 *
 * `replayed` tells that the operation had been carried out before, by the same key and body. `resource_id` leads to the
 * version that it was about: `client.schedules.getVersion(scope, receipt.resource_id)`.
 */
export interface ScheduleReceipt extends Receipt {
  readonly schedule_id: string;
  readonly resource_id: string;
  readonly reference: Reference;
}

/** What each call answers, by the name of its shape. */
export interface Kinds extends Answers {
  readonly ScheduleReceipt: ScheduleReceipt;
}

const known: { readonly [name: string]: { readonly [member: string]: string } } = {
  ...shapes,
  ScheduleReceipt: { ...shapes.Receipt, schedule_id: "string", resource_id: "string", reference: "Reference" },
};
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/**
 * An answer as its type. Throws `UnexpectedAnswer` where a part that the type promises is missing or is something else.
 *
 * What we do not know is let through: a newer server may say more.
 */
export function believed<K extends keyof Kinds>(kind: K, document: unknown, status: number): Kinds[K] {
  const place = fault(document, kind, "");
  if (place !== undefined) {
    throw new UnexpectedAnswer(
      `The server's answer is not the ${kind} that was asked for: look at '${place || "(document)"}'.`,
      status,
    );
  }
  return document as Kinds[K];
}

/** The place of the first part that is not as its shape says. */
function fault(value: unknown, shape: string, at: string): string | undefined {
  if (shape.endsWith("|null")) return value === null ? undefined : fault(value, shape.slice(0, -"|null".length), at);
  if (shape.endsWith("[]")) {
    if (!Array.isArray(value)) return at;
    return first(value.map((each, index) => fault(each, shape.slice(0, -"[]".length), `${at}/${index}`)));
  }
  const members = known[shape];
  if (members === undefined) return isPlainly(value, shape) ? undefined : at;
  if (!isObject(value)) return at;
  return first(
    Object.entries(members).map(([name, inner]) => {
      const optional = inner.startsWith("?");
      if (optional && !Object.hasOwn(value, name)) return undefined;
      const own = Object.hasOwn(value, name) ? value[name] : undefined;
      return fault(own, optional ? inner.slice(1) : inner, `${at}/${name}`);
    }),
  );
}

function first(places: readonly (string | undefined)[]): string | undefined {
  return places.find((each) => each !== undefined);
}

function isPlainly(value: unknown, shape: string): boolean {
  if (shape === "integer") return Number.isSafeInteger(value);
  if (shape === "object") return isObject(value);
  if (shape === "instant") return typeof value === "string" && INSTANT.test(value);
  return typeof value === shape;
}
