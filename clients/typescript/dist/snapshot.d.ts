/** A request as bytes, taken once: what the caller changes afterwards reaches nothing. */
/** The largest request, in bytes of UTF-8, that a server reads. */
export declare const MAX_DOCUMENT_BYTES: number;
/** How many objects and lists may stand inside one another. */
export declare const MAX_DEPTH = 64;
/**
 * The request as bytes of JSON. Every member is read once, and members that are undefined are left out.
 *
 * Throws `InvalidSchedule`, with all faults, for what is no JSON (a Date, a Map, a BigInt, NaN, undefined in a list, half
 * a character, an integer beyond ±(2^53 - 1), too deep) and for what no server reads: it refuses before all of it is
 * sent, and that answer may be lost.
 */
export declare function snapshot(request: unknown): Uint8Array;
