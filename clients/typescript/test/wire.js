/** Answers of the API as documents, and servers on real sockets that remember what they were sent. */

import http from "node:http";
import net from "node:net";

import { Client } from "horarium";

export const SCOPE = { org_id: "acme", environment_id: "test" };
export const ROOT = "/v1/organizations/acme/environments/test";
export const SCHEDULE = "7b0c7c3e-4f0e-4f53-9f0b-0a5d2f2d8a11";
export const RESOURCE = "0d1f6f5e-4d68-4c6e-8df0-7f6c2c9d3b11";
export const REFERENCE = { schedule_id: SCHEDULE, revision: 2, digest: `sha256:${"0".repeat(64)}` };
const PRECONDITIONS = { expected_environment_epoch: 1, expected_reset_generation: 1 };
export const PUBLICATION = {
  schedule_id: SCHEDULE,
  expected_revision: 0,
  ...PRECONDITIONS,
  configuration: { name: "Review" },
};
export const RETIREMENT = { version: REFERENCE, expected_generation: 0, ...PRECONDITIONS };
export const CHANGE = { ...RETIREMENT, enabled: true };
export const ENVIRONMENT = {
  ...SCOPE,
  mode: "simulation",
  authority_epoch: 1,
  reset_generation: 2,
  runtime_profile: "embedded",
  execution_ready: true,
};
export const RECEIPT = {
  receipt_id: "b9d3f0de-29a0-43a2-92ad-7f3f2f3f1a00",
  operation: "publish",
  schedule_id: SCHEDULE,
  resource_id: RESOURCE,
  reference: REFERENCE,
  environment_epoch: 1,
  reset_generation: 2,
  created_at: "2026-11-30T12:00:00.25Z",
  warnings: ["It will never run."],
  replayed: false,
};
const STANDING = {
  schedule_id: SCHEDULE,
  resource_id: RESOURCE,
  reference: REFERENCE,
  head: { ...REFERENCE, revision: 3 },
  retired: false,
  published_at: "2026-11-30T12:00:00Z",
  published_by: "ada",
  activation: {
    version: REFERENCE,
    generation: 4,
    enabled: true,
    changed_at: "2026-11-30T12:30:00Z",
    changed_by: "grace",
  },
  runtime: { state: "active", generation: 4, observed_at: "2026-11-30T12:31:00Z" },
  execution_ready: true,
};
export const RECORD = { ...STANDING, configuration: { name: "Review" } };
export const DIRECTORY = {
  schedules: [{ name: "Review", ...STANDING, next_due: "2026-12-01T06:30:00Z" }],
  next_cursor: null,
};

/** Each call, with what it is answered, and what has to be sent for it. */
export const CALLS = [
  { call: (c) => c.environments.get(SCOPE), answer: ENVIRONMENT, target: ROOT },
  { call: (c) => c.schedules.get(SCOPE, SCHEDULE), answer: RECORD, target: `${ROOT}/schedules/${SCHEDULE}` },
  {
    call: (c) => c.schedules.get(SCOPE, SCHEDULE, { revision: 2 }),
    answer: RECORD,
    target: `${ROOT}/schedules/${SCHEDULE}?revision=2`,
  },
  {
    call: (c) => c.schedules.getVersion(SCOPE, RESOURCE),
    answer: RECORD,
    target: `${ROOT}/schedule-versions/${RESOURCE}`,
  },
  {
    call: (c) => c.schedules.list(SCOPE),
    answer: DIRECTORY,
    target: `${ROOT}/schedules?limit=25&include_retired=false`,
  },
  {
    call: (c) => c.schedules.list(SCOPE, { limit: 2, after: SCHEDULE, include_retired: true }),
    answer: DIRECTORY,
    target: `${ROOT}/schedules?limit=2&include_retired=true&after=${SCHEDULE}`,
  },
  { call: (c) => c.receipts.get(SCOPE, "k/1 #?"), answer: RECEIPT, target: `${ROOT}/receipts/k%2F1%20%23%3F` },
  { call: (c) => c.receipts.get(SCOPE, ".."), answer: RECEIPT, target: `${ROOT}/receipts/..` },
];

/** Each mutation: how it is called with a request, and where that goes. */
export const MUTATIONS = [
  {
    name: "publish",
    call: (c, request = PUBLICATION, key = "k 1") => c.schedules.publish(SCOPE, request, key),
    request: PUBLICATION,
    target: `${ROOT}/schedules`,
  },
  {
    name: "setEnabled",
    call: (c, request = CHANGE, key = "k 1") => c.schedules.setEnabled(SCOPE, request, key),
    request: CHANGE,
    target: `${ROOT}/schedules/${SCHEDULE}/activation`,
  },
  {
    name: "retire",
    call: (c, request = RETIREMENT, key = "k 1") => c.schedules.retire(SCOPE, request, key),
    request: RETIREMENT,
    target: `${ROOT}/schedules/${SCHEDULE}/retirement`,
  },
];

/**
 * A server that answers every request alike, or as a function does, and remembers all of them; it ends with the test.
 *
 * @param t The context of the test.
 */
export async function serve(t, answer, { status = 200, headers = {} } = {}) {
  const requests = [];
  const server = http.createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    requests.push({
      method: request.method,
      target: request.url,
      headers: request.headers,
      body: Buffer.concat(parts).toString(),
    });
    if (typeof answer === "function") return answer(response, requests.at(-1));
    response.writeHead(status, { "Content-Type": "application/json", ...headers });
    response.end(typeof answer === "string" || Buffer.isBuffer(answer) ? answer : JSON.stringify(answer));
  });
  const address = await listening(t, server);
  return { address, requests, client: (token = "secret", options = {}) => new Client(address, { token, ...options }) };
}

/** A server that counts the bytes' requests by their heads and behaves as it likes on the socket. */
export async function serveSocket(t, behave) {
  const heads = [];
  const server = net.createServer((socket) => {
    let read = "";
    socket.on("error", () => undefined);
    socket.on("data", (part) => {
      read += part.toString("latin1");
      const end = read.indexOf("\r\n\r\n");
      const length = Number(/content-length: (\d+)/i.exec(read)?.[1] ?? 0);
      if (end < 0 || read.length < end + 4 + length) return;
      heads.push(read);
      read = "";
      behave(socket);
    });
  });
  return { address: await listening(t, server), heads };
}

/** The address of a port on which nobody listens. */
export async function deadAddress() {
  const server = net.createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

/** What a promise is rejected with. */
export async function failing(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}

async function listening(t, server) {
  const open = new Set();
  server.on("connection", (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  t.after(async () => {
    for (const socket of open) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${server.address().port}`;
}
