/**
 * One call: snapshot first, then the token, then exactly one request; and what an answer, or none, means.
 *
 * Nothing is ever sent twice. Whether a mutation whose answer was lost may be repeated is for a person to decide, who knows
 * what was reviewed.
 */
import { type Kinds } from "./answers.js";
/** One environment of one organization: the names as a token and an address have them. */
export interface Scope {
    readonly org_id: string;
    readonly environment_id: string;
}
/** A bearer token, or a function that gives one for each call, asynchronously or not. */
export type Token = string | (() => string | Promise<string>);
/** How long a call may take from its token until the whole answer is there, in milliseconds, unless told otherwise. */
export declare const ANSWER_WITHIN_MS = 30000;
/** What will be sent, as it was when the method was called. `key` is undefined for whatever changes nothing. */
export interface Call {
    readonly operation: string;
    readonly method: "GET" | "POST";
    readonly path: string;
    readonly content: Uint8Array | undefined;
    readonly key: string | undefined;
}
/** Sends calls to one server. */
export declare class Caller {
    #private;
    constructor(baseUrl: string, token: Token, answerWithinMs: number);
    /** The answer. Throws `Problem`, `Unreachable`, `UnexpectedAnswer`, and for mutations `OutcomeUnknown`. */
    send<K extends keyof Kinds>(call: Call, kind: K): Promise<Kinds[K]>;
}
/** A call that changes nothing. The parts of the path are quoted here. */
export declare function reading(operation: string, scope: Scope, path: readonly Part[], query?: {
    readonly [name: string]: string;
}): Call;
/** A mutation, under the caller's key; the request is copied here. */
export declare function changing(operation: string, scope: Scope, path: readonly Part[], request: unknown, key: string): Call;
/** A part of a path: fixed, or a value of the caller's with the place that a fault of it is told at. */
export type Part = string | {
    readonly value: unknown;
    readonly pointer: string;
    readonly sentence: string;
};
