// What is sent: one request, as it was when the method was called, with a fresh token and the caller's key.

import assert from "node:assert/strict";
import { test } from "node:test";
import vm from "node:vm";

import { Client, InvalidSchedule, InvalidScope, Misconfigured } from "horarium";

import {
  CALLS,
  CHANGE,
  ENVIRONMENT,
  failing,
  MUTATIONS,
  PUBLICATION,
  RECEIPT,
  RECORD,
  RETIREMENT,
  ROOT,
  SCHEDULE,
  SCOPE,
  serve,
} from "./wire.js";

const MAX_DOCUMENT_BYTES = 256 * 1024;

test("a read is one request with a bearer token and no key", async (t) => {
  for (const { call, answer, target } of CALLS) {
    const server = await serve(t, answer);
    assert.deepEqual(await call(server.client("abc.def")), answer);
    assert.equal(server.requests.length, 1);
    const [sent] = server.requests;
    assert.deepEqual([sent.method, sent.target, sent.body], ["GET", target, ""]);
    assert.equal(sent.headers["authorization"], "Bearer abc.def");
    assert.equal(sent.headers["idempotency-key"], undefined);
    assert.equal(sent.headers["content-type"], undefined);
  }
});

test("a mutation is one request with the caller's key and the request as its body", async (t) => {
  for (const { call, request, target } of MUTATIONS) {
    const server = await serve(t, RECEIPT, { status: 201 });
    assert.deepEqual(await call(server.client("abc.def")), RECEIPT);
    assert.equal(server.requests.length, 1);
    const [sent] = server.requests;
    assert.deepEqual([sent.method, sent.target, JSON.parse(sent.body)], ["POST", target, request]);
    assert.equal(sent.headers["authorization"], "Bearer abc.def");
    assert.equal(sent.headers["idempotency-key"], "k 1");
    assert.equal(sent.headers["content-type"], "application/json");
    assert.equal(sent.headers["content-length"], String(Buffer.byteLength(sent.body)));
  }
});

test("a request is copied before the token is awaited", async (t) => {
  for (const { call } of MUTATIONS) {
    const server = await serve(t, RECEIPT, { status: 201 });
    const request = structuredClone({ ...PUBLICATION, ...CHANGE, configuration: { policy: { overlap: "skip" } } });
    const before = structuredClone(request);
    const scope = { ...SCOPE };
    let give;
    let asked;
    const isAsked = new Promise((resolve) => (asked = resolve));
    const token = () => {
      asked();
      return new Promise((resolve) => (give = resolve));
    };
    const client = server.client(token);
    const answer = call({ schedules: bound(client.schedules, scope) }, request);
    // The call has just been made, and already the caller's own may change.
    request.expected_revision = 99;
    await isAsked;
    request.configuration.policy.overlap = "allow";
    request.version.schedule_id = "another";
    scope.environment_id = "live";
    assert.equal(server.requests.length, 0, "nothing is sent before there is a token");
    give("late");
    await answer;
    const [sent] = server.requests;
    assert.deepEqual(JSON.parse(sent.body), before);
    assert.ok(sent.target.startsWith(`${ROOT}/schedules`));
    assert.ok(!sent.target.includes("another"));
    assert.equal(sent.headers["authorization"], "Bearer late");
  }
});

/** Schedules whose calls are made with a scope of the test's own. */
function bound(schedules, scope) {
  return Object.fromEntries(
    MUTATIONS.map(({ name }) => [name, (_scope, request, key) => schedules[name](scope, request, key)]),
  );
}

test("a mutation has a connection of its own, which no server is just closing", async (t) => {
  const server = await serve(t, RECEIPT, { status: 201 });
  for (const { call } of MUTATIONS) await call(server.client());
  await server.client().receipts.get(SCOPE, "k");
  assert.deepEqual(
    server.requests.map((each) => each.headers["connection"]),
    ["close", "close", "close", "keep-alive"],
  );
});

test("a token is a text, or whatever gives one", async (t) => {
  const server = await serve(t, ENVIRONMENT);
  for (const token of ["t", () => "t", async () => "t"]) await server.client(token).environments.get(SCOPE);
  assert.deepEqual(
    server.requests.map((each) => each.headers["authorization"]),
    ["Bearer t", "Bearer t", "Bearer t"],
  );
});

test("the token is asked anew for each call", async (t) => {
  const server = await serve(t, ENVIRONMENT);
  const tokens = ["first", "second"];
  const client = server.client(() => tokens.shift());
  await client.environments.get(SCOPE);
  await client.environments.get(SCOPE);
  assert.deepEqual(
    server.requests.map((each) => each.headers["authorization"]),
    ["Bearer first", "Bearer second"],
  );
});

test("what cannot be a token is refused and not repeated", async (t) => {
  const server = await serve(t, ENVIRONMENT);
  for (const token of ["", "two words", "a\nb", "ä", "secret\r\nX-Admin: yes", () => undefined, () => 7]) {
    const error = await failing(server.client(token).environments.get(SCOPE));
    assert.ok(error instanceof Misconfigured);
    assert.equal(error.code, "misconfigured");
    assert.ok(!String(error.stack).includes("secret\r"));
  }
  assert.equal(server.requests.length, 0);
});

test("a token that cannot be had sends nothing and is told as it is", async (t) => {
  const server = await serve(t, RECEIPT);
  const away = new Error("the identity provider is away");
  const token = async () => {
    throw away;
  };
  assert.equal(await failing(server.client(token).schedules.publish(SCOPE, PUBLICATION, "k")), away);
  assert.equal(server.requests.length, 0);
});

test("what cannot be a key is refused before anything is sent", async (t) => {
  const server = await serve(t, RECEIPT);
  for (const key of ["", "a".repeat(201), " k", "k ", "k\n", "clé", "\x7f", undefined, null, 7, ["k"]]) {
    for (const { call, request } of MUTATIONS) {
      const refused = server.client().schedules;
      const error = await failing(call({ schedules: keyed(refused, key) }, request));
      assert.ok(error instanceof InvalidSchedule, `${key}: ${error}`);
      assert.equal(error.faults[0].code, "invalid_idempotency_key");
      assert.match(error.message, /1 to 200 printable ASCII/);
    }
  }
  assert.equal(server.requests.length, 0);
});

/** Schedules whose mutations are called with this key, undefined too. */
function keyed(schedules, key) {
  return Object.fromEntries(
    MUTATIONS.map(({ name }) => [name, (scope, request) => schedules[name](scope, request, key)]),
  );
}

test("a request that is no JSON is refused with its place and before anything is sent", async (t) => {
  const server = await serve(t, RECEIPT);
  class Money {
    amount = 1;
  }
  const circle = {};
  circle.again = circle;
  const odd = [
    [new Date(), "not_json"],
    [new Map([["a", 1]]), "not_json"],
    [new Money(), "not_json"],
    [new String("boxed"), "not_json"],
    [{ toJSON: () => "x" }, "not_json", "/toJSON"],
    [() => 1, "not_json"],
    [Symbol("s"), "not_json"],
    [10n, "not_json"],
    [[undefined], "not_json", "/0"],
    [new Array(1), "not_json", "/0"],
    [Number.NaN, "not_a_number"],
    [-Infinity, "not_a_number"],
    [2 ** 60, "integer_too_large"],
    ["\ud800", "lone_surrogate"],
    [{ "a/b~\udc00": 1 }, "lone_surrogate", "/a~1b~0\udc00"],
    [circle, "too_deep", "/again".repeat(62)],
  ];
  for (const [value, code, below = ""] of odd) {
    const request = { ...PUBLICATION, configuration: { at: value } };
    const error = await failing(server.client().schedules.publish(SCOPE, request, "k"));
    assert.ok(error instanceof InvalidSchedule, `${code}: ${error}`);
    assert.equal(error.code, "invalid_schedule");
    assert.equal(error.outcomeUnknown, false);
    const [fault] = error.faults;
    assert.deepEqual([fault.code, fault.pointer], [code, `/configuration/at${below}`]);
    assert.ok(error.message.includes(fault.sentence));
  }
  for (const request of [undefined, null, "text", [PUBLICATION], 7]) {
    const error = await failing(server.client().schedules.publish(SCOPE, request, "k"));
    assert.deepEqual([error.name, error.faults[0].pointer], ["InvalidSchedule", ""]);
  }
  assert.equal(server.requests.length, 0);
});

test("a request that names the same parts again and again is given up soon", async (t) => {
  const server = await serve(t, RECEIPT);
  let configuration = [];
  for (let level = 0; level < 50; level += 1) configuration = [configuration, configuration];
  const error = await failing(server.client().schedules.publish(SCOPE, { ...PUBLICATION, configuration }, "k"));
  assert.equal(error.faults[0].code, "too_large");
  assert.equal(server.requests.length, 0);
});

test("all faults of a request are told at once", async (t) => {
  const server = await serve(t, RECEIPT);
  const configuration = { a: Number.NaN, b: { c: [1, 10n] } };
  const error = await failing(server.client().schedules.publish(SCOPE, { ...PUBLICATION, configuration }, "k"));
  assert.deepEqual(
    error.faults.map((each) => each.pointer),
    ["/configuration/a", "/configuration/b/c/1"],
  );
});

test("a member that is undefined is left out, and one of any name is kept", async (t) => {
  const server = await serve(t, RECEIPT);
  const foreign = vm.runInNewContext('({ name: "of another realm", list: [1] })');
  const configuration = JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1}');
  const request = { ...PUBLICATION, configuration, foreign, left_out: undefined };
  await server.client().schedules.publish(SCOPE, request, "k");
  assert.deepEqual(
    JSON.parse(server.requests[0].body),
    JSON.parse(JSON.stringify({ ...PUBLICATION, configuration, foreign })),
  );
  assert.match(server.requests[0].body, /"__proto__":\{"polluted":true\}/);
});

test("a change that names no version is refused", async (t) => {
  const server = await serve(t, RECEIPT);
  for (const version of [null, {}, { schedule_id: 7 }, { schedule_id: "" }, "text", undefined]) {
    for (const call of [
      () => server.client().schedules.retire(SCOPE, { ...RETIREMENT, version }, "k"),
      () => server.client().schedules.setEnabled(SCOPE, { ...CHANGE, version }, "k"),
    ]) {
      const error = await failing(call());
      assert.ok(error instanceof InvalidSchedule);
      assert.equal(error.faults[0].pointer, "/version/schedule_id");
    }
  }
  assert.equal(server.requests.length, 0);
});

test("a scope that is none is refused and cannot leave its place in the path", async (t) => {
  const server = await serve(t, ENVIRONMENT);
  const scopes = [
    { org_id: "acme" },
    { ...SCOPE, more: "x" },
    { ...SCOPE, org_id: 7 },
    { ...SCOPE, org_id: "../../x" },
    { ...SCOPE, environment_id: "" },
    { ...SCOPE, environment_id: "test\n" },
    undefined,
    null,
    "acme/test",
  ];
  for (const scope of scopes) {
    const error = await failing(server.client().environments.get(scope));
    assert.ok(error instanceof InvalidScope, String(error));
    assert.equal(error.code, "invalid_scope");
  }
  assert.equal(server.requests.length, 0);
});

test("ids are quoted in the path, and an empty one is refused", async (t) => {
  const server = await serve(t, RECORD);
  await server.client().schedules.get(SCOPE, "../receipts/x?y#z");
  assert.equal(server.requests[0].target, `${ROOT}/schedules/..%2Freceipts%2Fx%3Fy%23z`);
  for (const id of ["", undefined, null, 7, "\ud800"]) {
    for (const call of [
      (c) => c.schedules.get(SCOPE, id),
      (c) => c.schedules.getVersion(SCOPE, id),
      (c) => c.receipts.get(SCOPE, id),
    ]) {
      assert.ok((await failing(call(server.client()))) instanceof InvalidSchedule);
    }
  }
  assert.equal(server.requests.length, 1);
});

test("an option that there is not is refused, and not left out in silence", async (t) => {
  const server = await serve(t, RECORD);
  const listed = await failing(server.client().schedules.list(SCOPE, { includeRetired: true, Limit: 3 }));
  assert.deepEqual(
    listed.faults.map((each) => each.pointer),
    ["/includeRetired", "/Limit"],
  );
  assert.match(listed.message, /limit, after, include_retired/);
  assert.ok((await failing(server.client().schedules.get(SCOPE, SCHEDULE, { version: 2 }))) instanceof InvalidSchedule);
  assert.equal(server.requests.length, 0);
});

test("an address that is none is refused and no password repeated", () => {
  const addresses = [
    "",
    "api.test",
    "ftp://api.test",
    "http://",
    "http:api.test",
    "http:///api.test",
    "http://user:hunter2@api.test",
    "http://:hunter2@api.test",
    "http://api.test?x=1",
    "http://api.test/#x",
    "http://127.0.0.1:99999",
    "http://127.0.0.1:0",
    "http://127.0.0.1:abc",
    "http://[::1",
    "http://a b",
    "http://127.0.0.1:1/\n",
    undefined,
  ];
  for (const address of addresses) {
    assert.throws(
      () => new Client(address, { token: "t" }),
      (error) => error instanceof Misconfigured && !error.stack.includes("hunter2"),
      String(address),
    );
  }
  for (const answerWithinMs of [0, -1, Number.NaN, Infinity, 2 ** 31]) {
    assert.throws(() => new Client("http://api.test", { token: "t", answerWithinMs }), Misconfigured);
  }
});

test("an address may have a path", async (t) => {
  const server = await serve(t, ENVIRONMENT);
  await new Client(`${server.address}/horarium/`, { token: "t" }).environments.get(SCOPE);
  assert.equal(server.requests[0].target, `/horarium${ROOT}`);
});

test("a request that no server reads is refused before it is sent", async (t) => {
  const server = await serve(t, RECEIPT);
  const publish = (padding) =>
    server.client().schedules.publish(SCOPE, { ...PUBLICATION, configuration: { name: "x".repeat(padding) } }, "key");
  const smallest = JSON.stringify({ ...PUBLICATION, configuration: { name: "" } }).length;
  await publish(MAX_DOCUMENT_BYTES - smallest);
  const error = await failing(publish(MAX_DOCUMENT_BYTES - smallest + 1));
  assert.equal(error.faults[0].code, "too_large");
  assert.equal(server.requests.length, 1);
  assert.equal(server.requests[0].body.length, MAX_DOCUMENT_BYTES);
});

test("a client without a token is refused in a sentence, and not by an error of the language", () => {
  for (const options of [undefined, null, "t", {}]) {
    assert.throws(
      () => new Client("http://api.test", options),
      (error) => error instanceof Misconfigured && error.message.includes("{ token }"),
    );
  }
});
