/**
 * One call: snapshot first, then the token, then exactly one request; and what an answer, or none, means.
 *
 * Nothing is ever sent twice. Whether a mutation whose answer was lost may be repeated is for a person to decide, who knows
 * what was reviewed.
 */

import { believed, type Kinds } from "./answers.js";
import {
  InvalidSchedule,
  InvalidScope,
  isObject,
  Misconfigured,
  OutcomeUnknown,
  Problem,
  problemOf,
  UnexpectedAnswer,
  Unreachable,
} from "./errors.js";
import { snapshot } from "./snapshot.js";
import { exchange, NeverSent, type Incoming } from "./transport.js";

/** One environment of one organization: the names as a token and an address have them. */
export interface Scope {
  readonly org_id: string;
  readonly environment_id: string;
}

/** A bearer token, or a function that gives one for each call, asynchronously or not. */
export type Token = string | (() => string | Promise<string>);

/** How long a call may take from its token until the whole answer is there, in milliseconds, unless told otherwise. */
export const ANSWER_WITHIN_MS = 30_000;
/** Characters of an idempotency key. */
const MAX_KEY = 200;
/** Bytes of an answer that are read: many times the largest page. */
const MAX_ANSWER = 64 * 1024 * 1024;
/** What a server may ask to wait at the most. */
const LONGEST_WAIT_MS = 24 * 60 * 60 * 1_000;
/** The longest time that a timer of JavaScript can be set to. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9])?$/;
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;
// In what `JSON.stringify` writes, a half character alone is an escape; a backslash before it would be another text.
const HALF_CHARACTER = /(?:^|[^\\])(?:\\\\)*\\ud[89a-f][0-9a-f]{2}/;

/** What will be sent, as it was when the method was called. `key` is undefined for whatever changes nothing. */
export interface Call {
  readonly operation: string;
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly content: Uint8Array | undefined;
  readonly key: string | undefined;
}

/** Sends calls to one server. */
export class Caller {
  readonly #server: URL;
  readonly #root: string;
  readonly #token: Token;
  readonly #answerWithinMs: number;

  constructor(baseUrl: string, token: Token, answerWithinMs: number) {
    this.#server = addressOf(baseUrl);
    this.#root = this.#server.pathname.replace(/\/$/, "");
    this.#token = token;
    if (!(answerWithinMs > 0 && answerWithinMs <= LONGEST_TIMER_MS)) {
      throw new Misconfigured(`answerWithinMs is more than 0 and at most ${LONGEST_TIMER_MS} milliseconds.`);
    }
    this.#answerWithinMs = answerWithinMs;
  }

  /** The answer. Throws `Problem`, `Unreachable`, `UnexpectedAnswer`, and for mutations `OutcomeUnknown`. */
  async send<K extends keyof Kinds>(call: Call, kind: K): Promise<Kinds[K]> {
    const answer = await this.#exchange(call);
    try {
      return believed(kind, this.#document(call, answer), answer.status);
    } catch (error) {
      if (error instanceof Problem && error.status >= 500 && error.status !== 503) {
        throwIfChanging(call, `the server failed (${error.sentence})`, error);
      }
      // What stands between us and the server, or another release of it: either may have carried it out.
      if (error instanceof UnexpectedAnswer && (isSuccess(answer.status) || answer.status >= 500)) {
        throwIfChanging(call, error.sentence, error);
      }
      throw error;
    }
  }

  async #exchange(call: Call): Promise<Incoming> {
    const headers = {
      Authorization: `Bearer ${await this.#freshToken()}`,
      Accept: "application/json, application/problem+json",
      "Accept-Encoding": "identity",
      ...(call.content === undefined ? {} : { "Content-Type": "application/json" }),
      ...(call.key === undefined ? {} : { "Idempotency-Key": call.key }),
    };
    const alone = call.key !== undefined;
    const outgoing = { method: call.method, path: this.#root + call.path, headers, content: call.content, alone };
    try {
      return await exchange(this.#server, outgoing, this.#answerWithinMs, MAX_ANSWER);
    } catch (error) {
      const because = described(error);
      if (error instanceof NeverSent) {
        throw new Unreachable(
          `${this.#server.origin}${this.#root} does not answer (${because}), and nothing was sent.`,
          "Check the address, and that `horarium api` runs there.",
          error.cause,
        );
      }
      throwIfChanging(call, `the answer was lost (${because}).`, error);
      throw new Unreachable(`The ${call.operation} got no answer (${because}). It changes nothing.`, "", error);
    }
  }

  async #freshToken(): Promise<string> {
    const token: unknown = typeof this.#token === "function" ? await this.#token() : this.#token;
    if (typeof token !== "string" || !/^[!-~]+$/.test(token)) {
      // Never repeated in the sentence: most of it may be the real secret.
      throw new Misconfigured(
        "The token is empty or holds a character that no token has. Print one by `horarium token`.",
      );
    }
    return token;
  }

  /** The document of a successful answer; throws the problem of another one. */
  #document(call: Call, answer: Incoming): unknown {
    if (answer.content.length > MAX_ANSWER) {
      throw new UnexpectedAnswer(`The server's answer has more than ${MAX_ANSWER} bytes.`, answer.status);
    }
    let document: unknown;
    try {
      document = parsed(answer.content);
    } catch (error) {
      throw this.#foreign(call, answer, error);
    }
    if (isSuccess(answer.status)) return document;
    if (answer.status < 400 || !isObject(document) || !Object.hasOwn(document, "code")) {
      throw this.#foreign(call, answer);
    }
    throw problemOf(answer.status, document, retryAfterMs(answer.retryAfter));
  }

  #foreign(call: Call, answer: Incoming, cause?: unknown): UnexpectedAnswer {
    const path = call.path.split("?", 1)[0];
    return new UnexpectedAnswer(
      `${this.#server.origin}${this.#root}${path} answered with status ${answer.status} and a body that is none of this ` +
        "API's. Is that the address of Horarium's API, or of something that stands before it?",
      answer.status,
      cause,
    );
  }
}

/** A call that changes nothing. The parts of the path are quoted here. */
export function reading(
  operation: string,
  scope: Scope,
  path: readonly Part[],
  query: { readonly [name: string]: string } = {},
): Call {
  const asked = new URLSearchParams(query).toString();
  const address = pathOf(scope, path) + (asked === "" ? "" : `?${asked}`);
  return { operation, method: "GET", path: address, content: undefined, key: undefined };
}

/** A mutation, under the caller's key; the request is copied here. */
export function changing(operation: string, scope: Scope, path: readonly Part[], request: unknown, key: string): Call {
  checkKey(key);
  const content = snapshot(request);
  return { operation, method: "POST", path: pathOf(scope, path), content, key };
}

/** A part of a path: fixed, or a value of the caller's with the place that a fault of it is told at. */
export type Part = string | { readonly value: unknown; readonly pointer: string; readonly sentence: string };

function pathOf(scope: Scope, parts: readonly Part[]): string {
  const { org_id, environment_id } = checkedScope(scope);
  const whole = ["v1", "organizations", org_id, "environments", environment_id, ...parts.map(partOf)];
  return `/${whole.map(encodeURIComponent).join("/")}`;
}

function partOf(part: Part): string {
  if (typeof part === "string") return part;
  const { value, pointer, sentence } = part;
  if (typeof value !== "string" || value === "" || !value.isWellFormed()) {
    throw new InvalidSchedule([{ pointer, code: "required", sentence }]);
  }
  return value;
}

function checkedScope(scope: unknown): Scope {
  const names = isObject(scope) ? Object.keys(scope).sort() : [];
  if (!isObject(scope) || names.join() !== "environment_id,org_id") {
    throw new InvalidScope(`A scope has exactly org_id and environment_id, both texts; found [${names.join(", ")}].`);
  }
  const { org_id, environment_id } = scope;
  return { org_id: checkedName("organization", org_id), environment_id: checkedName("environment", environment_id) };
}

function checkedName(word: string, value: unknown): string {
  if (typeof value === "string" && NAME.test(value)) return value;
  throw new InvalidScope(
    `'${String(value).slice(0, 80)}' is no name of an ${word}: 1 to 64 letters, digits, '_', '.' or '-', beginning and ` +
      "ending with a letter or digit.",
  );
}

function checkKey(key: unknown): void {
  // A space at an end would be cut off on the way, and the receipt would stand under another key.
  if (typeof key === "string" && key.length <= MAX_KEY && /^[!-~](?:[ -~]*[!-~])?$/.test(key)) return;
  const sentence =
    `An idempotency key has 1 to ${MAX_KEY} printable ASCII characters and no space at its ends. ` +
    `Found ${JSON.stringify(String(key).slice(0, 80))}.`;
  throw new InvalidSchedule([{ pointer: "", code: "invalid_idempotency_key", sentence }]);
}

function addressOf(baseUrl: string): URL {
  const found = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  const usable =
    found !== undefined &&
    ["http:", "https:"].includes(found.protocol) &&
    /^https?:\/\/[^/?#]/i.test(baseUrl) &&
    !/\s/.test(baseUrl) &&
    found.port !== "0" &&
    [found.username, found.password, found.search, found.hash].every((each) => each === "");
  if (!usable) {
    // The address may hold a password, so it is not repeated.
    throw new Misconfigured(
      "The server's address is http:// or https:// with a host, without a user, a query or a fragment: " +
        "https://horarium.example, or http://127.0.0.1:8080.",
    );
  }
  return found;
}

function parsed(content: Uint8Array): unknown {
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
  const document: unknown = JSON.parse(text);
  if (text.includes("\\u") && HALF_CHARACTER.test(JSON.stringify(document))) {
    // It could be neither printed nor stored by whoever asked.
    throw new SyntaxError("the answer holds half a character (a lone surrogate)");
  }
  return document;
}

function retryAfterMs(header: string | undefined): number | undefined {
  const text = header?.trim() ?? "";
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1_000, LONGEST_WAIT_MS);
  if (!HTTP_DATE.test(text)) return undefined;
  const wait = Date.parse(text) - Date.now();
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(0, wait), LONGEST_WAIT_MS);
}

function throwIfChanging(call: Call, because: string, cause: unknown): void {
  if (call.key === undefined) return;
  const request: unknown = JSON.parse(new TextDecoder().decode(call.content));
  throw new OutcomeUnknown(call.operation, call.key, isObject(request) ? request : {}, because, cause);
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function described(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
