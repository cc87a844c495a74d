// How calls fail: a class for each status and code, and a mutation whose outcome is unknown.

import assert from "node:assert/strict";
import { pipeline, Readable } from "node:stream";
import { test } from "node:test";
import { inspect } from "node:util";
import { gzipSync } from "node:zlib";

import * as horarium from "horarium";
import { Client, codes, HorariumError, OutcomeUnknown, Problem, UnexpectedAnswer, Unreachable } from "horarium";

import {
  CALLS,
  deadAddress,
  ENVIRONMENT,
  failing,
  MUTATIONS,
  PUBLICATION,
  RECEIPT,
  SCHEDULE,
  SCOPE,
  serve,
  serveSocket,
} from "./wire.js";

async function refused(t, status, document, headers) {
  const server = await serve(t, document, { status, headers });
  return failing(server.client().schedules.get(SCOPE, SCHEDULE));
}

const STATUSES = {
  BadRequest: 400,
  Unauthenticated: 401,
  Forbidden: 403,
  NotFound: 404,
  Conflict: 409,
  NotAdmissible: 409,
  TooLarge: 413,
  Invalid: 422,
  TooManyRequests: 429,
  ServerFailed: 500,
  Unavailable: 503,
};

test("each code has the class that the Python client gives it", async (t) => {
  let document;
  const server = await serve(t, (response) => {
    response.writeHead(document.status, { "Content-Type": "application/problem+json" });
    response.end(JSON.stringify(document));
  });
  assert.ok(Object.keys(codes).length > 50);
  for (const [code, name] of Object.entries(codes)) {
    document = { status: STATUSES[name], code, title: "T", detail: "No.", next_step: "Do this." };
    const error = await failing(server.client().schedules.get(SCOPE, SCHEDULE));
    assert.equal(error.constructor, horarium[name], code);
    assert.ok(error instanceof Problem && error instanceof HorariumError && error instanceof Error);
    assert.deepEqual(
      [error.name, error.code, error.status, error.sentence, error.nextStep, error.message],
      [name, code, STATUSES[name], "No.", "Do this.", `No. [${code}] Do this.`],
    );
    assert.deepEqual(error.problem, document);
    assert.equal(error.outcomeUnknown, false);
  }
});

test("a code of a newer server has the class of its status", async (t) => {
  const kinds = { ...STATUSES, NotAdmissible: undefined };
  for (const [name, status] of [...Object.entries(kinds), ["BadRequest", 418], ["ServerFailed", 507]]) {
    if (status === undefined) continue;
    const error = await refused(t, status, { code: "invented_later", title: "Strange" });
    assert.deepEqual([error.constructor, error.code, error.status], [horarium[name], "invented_later", status]);
    assert.equal(error.sentence, "Strange");
  }
  const inherited = await refused(t, 409, { code: "constructor", detail: "No." });
  assert.equal(inherited.constructor, horarium.Conflict);
});

test("all faults of a document are told with their places", async (t) => {
  const errors = [
    { pointer: "/configuration/policy", code: "required", detail: "A policy is required." },
    { pointer: "/expected_revision", code: "not_an_integer", detail: "An integer was expected." },
  ];
  const error = await refused(t, 422, { code: "invalid_schedule", detail: "There are 2 faults.", errors });
  assert.deepEqual(
    error.faults,
    errors.map(({ pointer, code, detail }) => ({ pointer, code, sentence: detail })),
  );
  for (const each of errors) assert.ok(error.message.includes(each.detail) && error.message.includes(each.pointer));
});

test("enabling tells every objection", async (t) => {
  const errors = [
    { pointer: "", code: "input_unreadable", detail: "There is no input 'mail'.", evidence: { input: "mail" } },
    { pointer: "", code: "agent_missing", detail: "No agent is registered." },
  ];
  const detail = errors.map((each) => each.detail).join(" ");
  const error = await refused(t, 409, { code: "input_unreadable", detail, errors });
  assert.ok(error instanceof horarium.NotAdmissible && error instanceof horarium.Conflict);
  assert.deepEqual(error.objections, [
    { code: "input_unreadable", sentence: "There is no input 'mail'.", evidence: { input: "mail" } },
    { code: "agent_missing", sentence: "No agent is registered.", evidence: {} },
  ]);
  assert.equal(error.message.split(errors[1].detail).length, 2, "no sentence is told twice");
});

test("a problem of another form than promised is still told", async (t) => {
  const error = await refused(t, 422, { code: 7, errors: [null, "x", { pointer: 3, evidence: [] }], detail: {} });
  assert.ok(error instanceof horarium.Invalid);
  assert.deepEqual([error.code, error.faults.length], ["unknown", 1]);
});

test("the wait that the server asks for is told, and is a day at the most", async (t) => {
  const waits = async (header) => {
    const error = await refused(
      t,
      429,
      { code: "rate_limited" },
      header === undefined ? {} : { "Retry-After": header },
    );
    return error.retryAfterMs;
  };
  const day = 24 * 60 * 60 * 1_000;
  assert.equal(await waits("7"), 7_000);
  assert.equal(await waits("9".repeat(30)), day);
  for (const none of [undefined, "soon", "-5", "1.5", "Mon, 99 Foo 2026 99:99:99 GMT"]) {
    assert.equal(await waits(none), undefined, none);
  }
  const soon = await waits(new Date(Date.now() + 600_000).toUTCString());
  assert.ok(soon > 300_000 && soon <= 600_000, soon);
  assert.equal(await waits(new Date(Date.now() + 20_000 * day).toUTCString()), day);
  assert.equal(await waits("Mon, 01 Jan 2001 00:00:00 GMT"), 0);
});

const LOST = {
  "no answer at all": (socket) => socket.end(),
  "a connection that is cut": (socket) => socket.resetAndDestroy(),
  "half an answer": (socket) => socket.end('HTTP/1.1 201 Created\r\nContent-Length: 500\r\n\r\n{"receipt'),
  "half an answer in chunks": (socket) =>
    socket.end("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{"),
  "no HTTP": (socket) => socket.end("SSH-2.0-OpenSSH_9.2\r\n"),
  "another protocol": (socket) =>
    socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
};

test("a server that drops its response has seen exactly one request, and the outcome is unknown", async (t) => {
  for (const [how, behave] of Object.entries(LOST)) {
    for (const { call, request } of MUTATIONS) {
      const server = await serveSocket(t, behave);
      const error = await failing(call(new Client(server.address, { token: "t" })));
      assert.ok(error instanceof OutcomeUnknown, `${how}: ${error.stack}`);
      assert.deepEqual([error.outcomeUnknown, error.code, error.status], [true, "outcome_unknown", undefined]);
      assert.deepEqual([error.key, error.request], ["k 1", request]);
      for (const advice of [
        "Keep the key 'k 1'",
        "Inspect the current state",
        "retry the same body and key explicitly",
      ]) {
        assert.ok(error.message.includes(advice));
      }
      assert.ok(error.cause instanceof Error);
      assert.equal(server.heads.length, 1, how);
    }
  }
});

test("a read whose answer is lost is not repeated either, and changed nothing", async (t) => {
  for (const [how, behave] of Object.entries(LOST)) {
    const server = await serveSocket(t, behave);
    const error = await failing(new Client(server.address, { token: "t" }).schedules.get(SCOPE, SCHEDULE));
    assert.ok(error instanceof Unreachable, `${how}: ${error.stack}`);
    assert.match(error.message, /changes nothing/);
    assert.equal(server.heads.length, 1, how);
  }
});

test("an answer that never ends is given up, silent or not", async (t) => {
  const drip = (socket) => {
    socket.write("HTTP/1.1 201 Created\r\nContent-Length: 500000\r\n\r\n");
    const timer = setInterval(() => socket.write(" "), 20);
    socket.once("close", () => clearInterval(timer));
  };
  for (const behave of [() => undefined, drip]) {
    const server = await serveSocket(t, behave);
    const client = new Client(server.address, { token: "t", answerWithinMs: 3_000 });
    const error = await failing(client.schedules.publish(SCOPE, PUBLICATION, "k"));
    assert.ok(error instanceof OutcomeUnknown, error.stack);
    assert.match(error.because, /did not come within 3000 ms/);
    assert.equal(server.heads.length, 1);
  }
});

test("an answer that asks to come again is not followed", async (t) => {
  for (const { call } of MUTATIONS) {
    const server = await serve(t, "<html>", { status: 421 });
    await failing(call(server.client()));
    assert.equal(server.requests.length, 1, "one that says that it was misdirected");
  }
  const elsewhere = await serve(t, ENVIRONMENT);
  for (const status of [301, 302, 307, 308, 408, 425, 429, 503]) {
    const server = await serve(t, "<html>", { status, headers: { Location: elsewhere.address, "Retry-After": "0" } });
    assert.ok((await failing(server.client().environments.get(SCOPE))) instanceof UnexpectedAnswer);
    assert.equal(server.requests.length, 1);
  }
  assert.equal(elsewhere.requests.length, 0, "a token is not carried to where a redirection leads");
});

test("a mutation that was never sent is no uncertain one", async () => {
  const address = await deadAddress();
  for (const { call } of MUTATIONS) {
    const error = await failing(call(new Client(address, { token: "t" })));
    assert.ok(error instanceof Unreachable, error.stack);
    assert.ok(error.message.includes(`${address} does not answer`));
    assert.match(error.message, /ECONNREFUSED/);
    assert.match(error.message, /nothing was sent/);
    assert.equal(error.outcomeUnknown, false);
  }
});

test("a server that speaks no TLS is never sent anything", async (t) => {
  const server = await serveSocket(t, () => undefined);
  const client = new Client(server.address.replace("http:", "https:"), { token: "secret" });
  const error = await failing(client.schedules.publish(SCOPE, PUBLICATION, "k"));
  assert.ok(error instanceof Unreachable, error.stack);
  assert.match(error.message, /no connection within 5000 ms/, "the answer would have had longer");
  assert.equal(server.heads.length, 0);
});

const SAYS_NOTHING = [
  [500, { code: "internal_error", detail: "Oops." }],
  [500, { code: "commit_lost", detail: "Who knows." }],
  [502, "<html>"],
  [504, { message: "upstream" }],
  [503, "<html>"],
  [599, "<html>"],
  [999, "<html>"],
  [201, { receipt: "?" }],
  [201, { ...RECEIPT, resource_id: null }],
  [201, "[".repeat(100_000) + "]".repeat(100_000)],
  // Each of these would be a receipt, but for the one thing.
  [201, JSON.stringify(RECEIPT).replace('"publish"', '"\\ud800"')],
  [201, Buffer.from(JSON.stringify(RECEIPT).replace('"publish"', '"\xff"'), "latin1")],
  [201, Buffer.from(JSON.stringify(RECEIPT), "utf16le")],
  [201, "\ufeff" + JSON.stringify(RECEIPT)],
  [204, ""],
];

test("an answer that says nothing about the change leaves it unknown, and refuses a read", async (t) => {
  for (const [status, answer] of SAYS_NOTHING) {
    const server = await serve(t, answer, { status });
    const about = `${status} ${String(JSON.stringify(answer)).slice(0, 60)}`;
    const error = await failing(server.client().schedules.publish(SCOPE, PUBLICATION, "k"));
    assert.ok(error instanceof OutcomeUnknown, `${about}: ${error.stack}`);
    assert.ok(error.cause instanceof HorariumError, about);
    assert.equal(server.requests.length, 1);
    const read = await failing(server.client().schedules.get(SCOPE, SCHEDULE));
    assert.ok(read instanceof UnexpectedAnswer || read instanceof horarium.ServerFailed, about);
    assert.equal(read.status, status);
  }
});

test("a foreign refusal of a mutation is told as that", async (t) => {
  for (const [status, answer] of [
    [302, "<html>"],
    [302, { code: "not_found", detail: "A redirection is no problem of the API." }],
    [400, "<html>"],
    [404, { message: "no code" }],
  ]) {
    const server = await serve(t, answer, { status });
    const error = await failing(server.client().schedules.publish(SCOPE, PUBLICATION, "k"));
    assert.ok(error instanceof UnexpectedAnswer);
    assert.deepEqual([error.code, error.status, error.outcomeUnknown], ["unexpected_answer", status, false]);
    assert.match(error.message, new RegExp(`status ${status}`));
  }
});

test("a refusal by the server is no uncertain outcome", async (t) => {
  for (const [status, code] of [
    [503, "catalog_unavailable"],
    [503, "execution_unavailable"],
    [409, "revision_conflict"],
  ]) {
    const server = await serve(t, { code, detail: "No." }, { status });
    const error = await failing(server.client().schedules.publish(SCOPE, PUBLICATION, "k"));
    assert.ok(error instanceof Problem);
    assert.deepEqual([error.code, error.outcomeUnknown], [code, false]);
  }
});

test("an answer of more bytes than any page has is read no further", async (t) => {
  const space = Buffer.alloc(1024 * 1024, " ");
  let written = 0;
  function* spaces() {
    for (; written < 200; written += 1) yield space;
  }
  const server = await serve(t, (response) => {
    response.writeHead(201);
    pipeline(Readable.from(spaces()), response, () => undefined);
  });
  const error = await failing(server.client().schedules.publish(SCOPE, PUBLICATION, "k"));
  assert.ok(error instanceof OutcomeUnknown, error.stack);
  assert.match(error.message, /more than 67108864 bytes/);
  assert.ok(written < 200, "the rest was not waited for");
});

test("a compressed answer, which was not asked for, is not believed", async (t) => {
  const server = await serve(t, gzipSync(JSON.stringify(RECEIPT)), {
    status: 201,
    headers: { "Content-Encoding": "gzip" },
  });
  assert.ok((await failing(server.client().schedules.publish(SCOPE, PUBLICATION, "k"))) instanceof OutcomeUnknown);
  assert.equal(server.requests[0].headers["accept-encoding"], "identity");
});

test("the time that a call may take does not include the token", async (t) => {
  const server = await serve(t, ENVIRONMENT);
  const token = () => new Promise((resolve) => setTimeout(() => resolve("t"), 3_100));
  const client = server.client(token, { answerWithinMs: 3_000 });
  assert.equal((await client.environments.get(SCOPE)).mode, "simulation");
});

test("no error shows the token", async (t) => {
  const server = await serve(t, "<html>", { status: 502 });
  for (const { call } of [...CALLS, ...MUTATIONS]) {
    const error = await failing(call(server.client("hunter2")));
    assert.ok(!inspect(error, { depth: 10 }).includes("hunter2"));
  }
  const dead = await failing(new Client(await deadAddress(), { token: "hunter2" }).environments.get(SCOPE));
  assert.ok(!inspect(dead, { depth: 10 }).includes("hunter2"));
});
