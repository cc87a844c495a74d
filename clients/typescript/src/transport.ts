/**
 * One request over Node's own `http` and `https`: sent once, whatever happens.
 *
 * Not `fetch`: it repeats a request by itself (after an answer with status 421), and it reads a path that ends in `..` as
 * another one, though an idempotency key may be just that.
 */

import * as http from "node:http";
import * as https from "node:https";

/** What will be sent. `path` goes over the wire as it stands. */
export interface Outgoing {
  readonly method: string;
  readonly path: string;
  readonly headers: { readonly [name: string]: string };
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
export class NeverSent extends Error {}

const CONNECT_WITHIN_MS = 5_000;

/**
 * Send one request to a server and read the whole answer, redirections not followed.
 *
 * Throws `NeverSent` where no connection came about, which is given 5,000 ms, and any other error where something may
 * have been sent: the answer did not come within `withinMs`, or not whole.
 */
export function exchange(server: URL, outgoing: Outgoing, withinMs: number, maxBytes: number): Promise<Incoming> {
  const secure = server.protocol === "https:";
  return new Promise((resolve, reject) => {
    let connected = false;
    const fail = (error: Error): void => {
      stop();
      reject(connected ? error : new NeverSent(error.message || error.name, { cause: error }));
      request.destroy();
    };
    const request = (secure ? https : http).request({
      protocol: server.protocol,
      // The brackets of an IPv6 address belong to the URL.
      hostname: server.hostname.replace(/^\[|\]$/g, ""),
      port: server.port,
      method: outgoing.method,
      path: outgoing.path,
      headers: {
        ...outgoing.headers,
        ...(outgoing.content === undefined ? {} : { "Content-Length": String(outgoing.content.length) }),
      },
      ...(outgoing.alone ? { agent: false } : {}),
    });
    const whole = setTimeout(() => fail(new Error(`it did not come within ${withinMs} ms`)), withinMs);
    const connecting = setTimeout(() => {
      if (!connected) fail(new Error(`no connection within ${CONNECT_WITHIN_MS} ms`));
    }, CONNECT_WITHIN_MS);
    const stop = (): void => {
      clearTimeout(whole);
      clearTimeout(connecting);
    };
    request.on("socket", (socket) => {
      const open = (): void => {
        connected = true;
        clearTimeout(connecting);
      };
      if (socket.connecting) socket.once(secure ? "secureConnect" : "connect", open);
      else open();
    });
    request.on("error", fail);
    request.on("close", () => fail(new Error("the connection was closed")));
    request.on("response", (response) => {
      const parts: Uint8Array[] = [];
      let length = 0;
      const done = (): void => {
        stop();
        resolve({
          status: response.statusCode ?? 0,
          retryAfter: response.headers["retry-after"],
          content: Buffer.concat(parts),
        });
      };
      response.on("data", (part: Uint8Array) => {
        parts.push(part);
        length += part.length;
        if (length > maxBytes) {
          done();
          request.destroy();
        }
      });
      response.on("error", fail);
      response.on("end", done);
    });
    request.end(outgoing.content);
  });
}
