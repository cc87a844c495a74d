/**
 * One request over Node's own `http` and `https`: sent once, whatever happens.
 *
 * Not `fetch`: it repeats a request by itself (after an answer with status 421), and it reads a path that ends in `..` as
 * another one, though an idempotency key may be just that.
 */
/** What will be sent. `path` goes over the wire as it stands. */
export interface Outgoing {
    readonly method: string;
    readonly path: string;
    readonly headers: {
        readonly [name: string]: string;
    };
    readonly content: Uint8Array | undefined;
    /** Whether it gets a connection of its own: a kept one that the server is just closing could lose it. */
    readonly alone: boolean;
}
/** What was answered: `content` is cut off at the limit that was asked for, plus at least a byte. */
export interface Incoming {
    readonly status: number;
    readonly retryAfter: string | undefined;
    readonly content: Uint8Array;
}
/** Nothing was sent: there was no connection. */
export declare class NeverSent extends Error {
}
/**
 * Send one request to a server and read the whole answer, redirections not followed.
 *
 * Throws `NeverSent` where no connection came about, which is given 5,000 ms, and any other error where something may
 * have been sent: the answer did not come within `withinMs`, or not whole.
 */
export declare function exchange(server: URL, outgoing: Outgoing, withinMs: number, maxBytes: number): Promise<Incoming>;
