/**
 * Every way in which a call fails, as one tree. Whatever is thrown has a `code` for programs, a `sentence` and a
 * `nextStep` for people, and says by `outcomeUnknown` whether a change may have been carried out all the same.
 *
 *     HorariumError
 *     ├── Problem                    the server answered, and did not do what was asked; nothing changed
 *     │   ├── BadRequest             400   the request cannot be read
 *     │   ├── Unauthenticated        401   the token is missing, expired, or none that the server trusts
 *     │   ├── Forbidden              403   the caller may not do this
 *     │   ├── NotFound               404   nothing here that the caller may see
 *     │   ├── Conflict               409   the state is not the one that was reviewed
 *     │   │   └── NotAdmissible            an occurrence would be refused now; `objections` tells every reason
 *     │   ├── TooLarge               413
 *     │   ├── Invalid                422   the document is refused; `faults` holds all that was found
 *     │   ├── TooManyRequests        429   later again: `retryAfterMs`
 *     │   ├── Unavailable            503   a part that is needed does not answer
 *     │   └── ServerFailed           any other 5xx
 *     ├── Unreachable                no answer, and nothing was changed by the call
 *     ├── OutcomeUnknown             a mutation was sent, and whether it was carried out is not known
 *     ├── UnexpectedAnswer           an answer that is none of this API's
 *     ├── InvalidSchedule            the request is none, and was not sent; `faults` holds all that was found
 *     ├── InvalidScope               the scope is none, and nothing was sent
 *     └── Misconfigured              the address or the token cannot be one
 *
 * Which class a code has is the same as in the Python client. A code that this release does not know has the class of its
 * status.
 */

import { codes, type ProblemCode, type ProblemDocument } from "./api.js";

/** One thing that is wrong with a document. */
export interface Fault {
  /** The place as a JSON pointer (RFC 6901), `""` for the whole document. */
  readonly pointer: string;
  /** Stable, for programs. */
  readonly code: string;
  /** What was expected, for people. */
  readonly sentence: string;
}

/** One reason for which an occurrence would be refused now. */
export interface Objection {
  /** Stable, for programs. */
  readonly code: string;
  /** The reason, for people. */
  readonly sentence: string;
  /** What the server looked at. */
  readonly evidence: { readonly [name: string]: unknown };
}

/** The root of what the client throws about a call. A token function's own error is passed on as it is. */
export class HorariumError extends Error {
  /** Stable, for programs: a code of the API, or one that the client gives (each class says which). */
  readonly code: ProblemCode;
  /** What happened, for people. */
  readonly sentence: string;
  /** What to do next, for people; may be empty. */
  readonly nextStep: string;
  /** The status of the answer; undefined where there was none, or none of this API. */
  readonly status: number | undefined = undefined;
  /** The problem document as the server sent it (RFC 9457); undefined where it sent none. */
  readonly problem: Partial<ProblemDocument> | undefined = undefined;
  /** Whether a mutation was sent whose outcome is not known: true of `OutcomeUnknown` alone. */
  readonly outcomeUnknown: boolean = false;

  constructor(code: ProblemCode, sentence: string, nextStep = "", more: readonly string[] = [], cause?: unknown) {
    const first = [sentence, `[${code}]`, nextStep].filter((each) => each !== "").join(" ");
    super([first, ...more].join("\n"), cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = code;
    this.sentence = sentence;
    this.nextStep = nextStep;
  }
}

/** What a problem is made of, beside its code and sentence. */
export interface ProblemParts {
  readonly status: number;
  readonly nextStep?: string;
  readonly faults?: readonly Fault[];
  readonly objections?: readonly Objection[];
  readonly retryAfterMs?: number | undefined;
  readonly problem?: Partial<ProblemDocument>;
}

/** The server answered with a problem (RFC 9457), and nothing changed by this call. */
export class Problem extends HorariumError {
  declare readonly status: number;
  /** All that was found, each with its place in the request. */
  readonly faults: readonly Fault[];
  /** How many milliseconds the server asked to wait, a day at the most; undefined where it asked for nothing. */
  readonly retryAfterMs: number | undefined;

  constructor(code: ProblemCode, sentence: string, parts: ProblemParts) {
    const faults = parts.faults ?? [];
    // What the sentence tells already is not told twice.
    const more = faults.filter((fault) => !sentence.includes(fault.sentence)).map(told);
    super(code, sentence, parts.nextStep, more);
    Object.assign(this, { status: parts.status, problem: parts.problem });
    this.faults = faults;
    this.retryAfterMs = parts.retryAfterMs;
  }
}

/** The request cannot be read as one of this API. */
export class BadRequest extends Problem {}

/** The token is missing, expired, or not one that the server trusts. It does not say which. */
export class Unauthenticated extends Problem {}

/** The caller is known, and may not do this: a scope is missing, or a human session has to do it. */
export class Forbidden extends Problem {}

/** There is nothing of that name that the caller may see. What another organization owns is answered the same. */
export class NotFound extends Problem {}

/** The state is not the one that the caller reviewed. Read it again before deciding again. */
export class Conflict extends Problem {}

/** Enabling is refused, since an occurrence would be refused now. The code is that of the first reason. */
export class NotAdmissible extends Conflict {
  /** Every reason, with what the server looked at; `faults` has them too, without the evidence. */
  readonly objections: readonly Objection[];

  constructor(code: ProblemCode, sentence: string, parts: ProblemParts) {
    super(code, sentence, parts);
    this.objections = parts.objections ?? [];
  }
}

/** The request is larger than any document of this API. */
export class TooLarge extends Problem {}

/** The document is refused. `faults` holds all that was found. */
export class Invalid extends Problem {}

/** The caller's share of requests is used up for now; see `retryAfterMs`. */
export class TooManyRequests extends Problem {}

/** The server failed at a request that it should have answered. Of a mutation this is the cause of an `OutcomeUnknown`. */
export class ServerFailed extends Problem {}

/** A part that is needed does not answer now. Nothing changed; the same request may be repeated with the same key. */
export class Unavailable extends Problem {}

/** The server gave no answer, and the call changed nothing: it was a read, or was never sent. Code `unreachable`. */
export class Unreachable extends HorariumError {
  constructor(sentence: string, nextStep = "", cause?: unknown) {
    super("unreachable", sentence, nextStep, [], cause);
  }
}

/** An answer that does not speak this API: a proxy's page, a redirection, another form. Code `unexpected_answer`. */
export class UnexpectedAnswer extends HorariumError {
  constructor(sentence: string, status?: number, cause?: unknown) {
    super("unexpected_answer", sentence, "", [], cause);
    Object.assign(this, { status });
  }
}

/**
 * A mutation was sent, and its answer was lost: it may have been carried out, or not. Code `outcome_unknown`.
 *
 * Keep `key`, `request`, the account and the environment until the outcome is known. Inspect the current state first
 * (`client.receipts.get`, `client.schedules.get`). Then, only after confirming the same account and scope, send the same
 * `request` with the same `key` again. Do not take a new key, do not rebuild the request from a newer head, and do not
 * enable anything because a publication was recovered. A reset or a revoked authority can refuse the recovery: keep the
 * request then, for whoever investigates.
 */
export class OutcomeUnknown extends HorariumError {
  override readonly outcomeUnknown: boolean = true;
  /** What was asked for, in words. */
  readonly operation: string;
  /** The idempotency key that was sent. */
  readonly key: string;
  /** A copy of what was sent, whatever became of the caller's own. */
  readonly request: { readonly [name: string]: unknown };
  /** Why nothing is known. `cause` has the error behind it. */
  readonly because: string;

  constructor(
    operation: string,
    key: string,
    request: { readonly [name: string]: unknown },
    because: string,
    cause?: unknown,
  ) {
    super(
      "outcome_unknown",
      `Whether the ${operation} was carried out is not known: ${because}`,
      `Keep the key '${key}' and the request. Inspect the current state, then retry the same body and key explicitly, ` +
        "with the same account and environment.",
      [],
      cause,
    );
    this.operation = operation;
    this.key = key;
    this.request = request;
    this.because = because;
  }
}

/** The request is none, and was not sent. Code `invalid_schedule`; `faults` holds all that was found, and is never empty. */
export class InvalidSchedule extends HorariumError {
  readonly faults: readonly Fault[];

  constructor(faults: readonly Fault[]) {
    const sentence = faults.length === 1 ? "The request has a fault." : `The request has ${faults.length} faults.`;
    super("invalid_schedule", sentence, "Nothing was sent.", faults.map(told));
    this.faults = faults;
  }
}

/** The scope is none: `{ org_id, environment_id }`, both names. Code `invalid_scope`; nothing was sent. */
export class InvalidScope extends HorariumError {
  constructor(sentence: string) {
    super("invalid_scope", sentence, "Nothing was sent.");
  }
}

/** The client cannot work as it is set up. Code `misconfigured`; nothing was sent. */
export class Misconfigured extends HorariumError {
  constructor(sentence: string) {
    super("misconfigured", sentence);
  }
}

type ProblemClass = new (code: ProblemCode, sentence: string, parts: ProblemParts) => Problem;

const classes = {
  BadRequest,
  Unauthenticated,
  Forbidden,
  NotFound,
  Conflict,
  NotAdmissible,
  TooLarge,
  Invalid,
  TooManyRequests,
  Unavailable,
  ServerFailed,
} satisfies { readonly [name: string]: ProblemClass };

const byStatus = new Map<number, ProblemClass>([
  [400, BadRequest],
  [401, Unauthenticated],
  [403, Forbidden],
  [404, NotFound],
  [409, Conflict],
  [413, TooLarge],
  [422, Invalid],
  [429, TooManyRequests],
  [500, ServerFailed],
  [503, Unavailable],
]);

/** The error for a problem document, in the class of its code, else of its status, else of the status's hundred. */
export function problemOf(
  status: number,
  document: { readonly [name: string]: unknown },
  retryAfterMs: number | undefined,
): Problem {
  const code = text(document["code"]) || "unknown";
  const found = Array.isArray(document["errors"]) ? document["errors"].filter(isObject) : [];
  const kind = classOf(code, status);
  return new kind(
    code,
    text(document["detail"]) || text(document["title"]) || `The server answered with status ${status}.`,
    {
      status,
      nextStep: text(document["next_step"]),
      faults: found.map((each) => ({
        pointer: text(each["pointer"]),
        code: text(each["code"]),
        sentence: text(each["detail"]),
      })),
      objections: found.map((each) => ({
        code: text(each["code"]),
        sentence: text(each["detail"]),
        evidence: isObject(each["evidence"]) ? each["evidence"] : {},
      })),
      retryAfterMs,
      problem: document,
    },
  );
}

/** Whether a value is an object and no list. */
export function isObject(value: unknown): value is { readonly [name: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function classOf(code: string, status: number): ProblemClass {
  const named = Object.hasOwn(codes, code) ? classes[codes[code as keyof typeof codes]] : undefined;
  return named ?? byStatus.get(status) ?? (status >= 500 ? ServerFailed : BadRequest);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function told(fault: Fault): string {
  return `${fault.pointer || "(document)"}: ${fault.sentence} [${fault.code}]`;
}
