// The client against the real API: the life of a schedule, its refusals, and a lost answer.
//
// HORARIUM_TEST_API names it: {"address", "scope", "configuration", "tokens": {"human", "program", "stranger", "operator"}}.
// tests/clients/test_typescript.py starts one and sets this.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import http from "node:http";
import { test as nodeTest } from "node:test";

import {
  Client,
  Conflict,
  Forbidden,
  Invalid,
  InvalidSchedule,
  NotFound,
  OutcomeUnknown,
  Unauthenticated,
} from "horarium";

import { failing, serve } from "./wire.js";

const api = process.env.HORARIUM_TEST_API === undefined ? undefined : JSON.parse(process.env.HORARIUM_TEST_API);
const skip = api === undefined && "HORARIUM_TEST_API names no API: tests/clients/test_typescript.py starts one";

function test(name, body) {
  nodeTest(name, { skip }, body);
}

const client = (token = "human", address = api.address) => new Client(address, { token: api.tokens[token] });
const environmentOf = async (us) => us.environments.get(api.scope);

async function expected(us) {
  const environment = await environmentOf(us);
  return {
    expected_environment_epoch: environment.authority_epoch,
    expected_reset_generation: environment.reset_generation,
  };
}

async function publication(us, more = {}) {
  return {
    schedule_id: randomUUID(),
    expected_revision: 0,
    ...(await expected(us)),
    configuration: api.configuration,
    ...more,
  };
}

async function reviewed(us, record, more = {}) {
  return {
    version: record.reference,
    expected_generation: record.activation?.generation ?? 0,
    ...(await expected(us)),
    ...more,
  };
}

async function published(us, more = {}) {
  const receipt = await us.schedules.publish(api.scope, await publication(us, more), randomUUID());
  return us.schedules.getVersion(api.scope, receipt.resource_id);
}

const change = async (us, record, enabled) =>
  us.schedules.setEnabled(api.scope, await reviewed(us, record, { enabled }), randomUUID());

test("the environment is read with the two numbers that a publication names", async () => {
  const environment = await environmentOf(client());
  assert.deepEqual([environment.org_id, environment.environment_id], [api.scope.org_id, api.scope.environment_id]);
  assert.ok(environment.authority_epoch >= 1 && environment.reset_generation >= 1);
  assert.equal(environment.execution_ready, true);
});

test("a schedule is published, read, enabled, paused and retired", async () => {
  const us = client();
  const request = await publication(us);
  const receipt = await us.schedules.publish(api.scope, request, randomUUID());
  assert.deepEqual([receipt.operation, receipt.schedule_id, receipt.replayed], ["publish", request.schedule_id, false]);
  const record = await us.schedules.getVersion(api.scope, receipt.resource_id);
  assert.deepEqual(record.configuration, request.configuration);
  assert.deepEqual(record.reference, receipt.reference);
  assert.deepEqual([record.activation, record.runtime], [null, { state: "paused", generation: 0 }]);

  const enabled = await us.schedules.setEnabled(api.scope, await reviewed(us, record, { enabled: true }), randomUUID());
  assert.deepEqual([enabled.operation, enabled.generation, enabled.enabled], ["enable", 1, true]);
  const active = await us.schedules.getVersion(api.scope, receipt.resource_id);
  const paused = await us.schedules.setEnabled(api.scope, await reviewed(us, active, { enabled: false }), randomUUID());
  assert.deepEqual([paused.operation, paused.generation, paused.enabled], ["pause", 2, false]);
  const still = await us.schedules.getVersion(api.scope, receipt.resource_id);
  const retired = await us.schedules.retire(api.scope, await reviewed(us, still), randomUUID());
  assert.equal(retired.operation, "retire");
  assert.equal((await us.schedules.get(api.scope, request.schedule_id)).retired, true);
});

test("the first version expects revision zero and a replacement the head", async () => {
  const us = client();
  const record = await published(us);
  const { schedule_id } = record;
  for (const expected_revision of [0, 2]) {
    const request = await publication(us, { schedule_id, expected_revision });
    const error = await failing(us.schedules.publish(api.scope, request, randomUUID()));
    assert.ok(error instanceof Conflict);
    assert.deepEqual([error.code, error.status], ["revision_conflict", 409]);
  }
  const next = await published(us, { schedule_id, expected_revision: record.head.revision });
  assert.equal(next.reference.revision, 2);
});

test("get reads the head or a revision, and getVersion an exact version", async () => {
  const us = client();
  const first = await published(us);
  const second = await published(us, { schedule_id: first.schedule_id, expected_revision: 1 });
  assert.deepEqual((await us.schedules.get(api.scope, first.schedule_id)).reference, second.reference);
  assert.deepEqual((await us.schedules.get(api.scope, first.schedule_id, { revision: 1 })).reference, first.reference);
  const exact = await us.schedules.getVersion(api.scope, first.resource_id);
  assert.deepEqual([exact.reference, exact.head], [first.reference, second.reference]);
});

test("a replacement leaves the enabled version, and whoever pauses names that one", async () => {
  const us = client();
  const first = await published(us);
  await change(us, first, true);
  const second = await published(us, { schedule_id: first.schedule_id, expected_revision: 1 });
  const head = await us.schedules.get(api.scope, first.schedule_id);
  assert.deepEqual([head.reference.revision, head.activation.version.revision], [2, 1]);
  assert.equal(head.runtime.generation, head.activation.generation);
  const error = await failing(change(us, { ...second, activation: head.activation }, false));
  assert.ok(error instanceof Conflict);
  assert.equal(error.code, "version_conflict");
  const paused = await change(us, { reference: head.activation.version, activation: head.activation }, false);
  assert.equal(paused.generation, 2);
});

test("whoever reviewed another generation or environment changes nothing", async () => {
  const us = client();
  const record = await published(us);
  const request = await reviewed(us, record, { enabled: true });
  for (const [more, code] of [
    [{ expected_generation: 3 }, "generation_conflict"],
    [{ expected_environment_epoch: 1_000 }, "environment_epoch_changed"],
    [{ expected_reset_generation: 1_000 }, "environment_reset"],
    [{ version: { ...record.reference, digest: `sha256:${"0".repeat(64)}` } }, "digest_conflict"],
  ]) {
    const error = await failing(us.schedules.setEnabled(api.scope, { ...request, ...more }, randomUUID()));
    assert.ok(error instanceof Conflict, String(error));
    assert.equal(error.code, code);
    assert.equal(error.problem.status, 409);
  }
  assert.equal((await us.schedules.get(api.scope, record.schedule_id)).activation, null);
});

test("publishing another version cannot revive a retired schedule", async () => {
  const us = client();
  const record = await published(us);
  const { enabled: _, ...request } = await reviewed(us, record, { enabled: true });
  await us.schedules.retire(api.scope, request, randomUUID());
  const again = await publication(us, { schedule_id: record.schedule_id, expected_revision: 1 });
  assert.equal((await failing(us.schedules.publish(api.scope, again, randomUUID()))).code, "schedule_retired");
  assert.deepEqual((await us.schedules.getVersion(api.scope, record.resource_id)).reference, record.reference);
});

test("a key publishes and reads, and a human session alone changes", async () => {
  const us = client("program");
  const record = await published(us);
  const request = await reviewed(us, record);
  for (const refused of [
    us.schedules.setEnabled(api.scope, { ...request, enabled: true }, randomUUID()),
    us.schedules.setEnabled(api.scope, { ...request, enabled: false }, randomUUID()),
    us.schedules.retire(api.scope, request, randomUUID()),
  ]) {
    const error = await failing(refused);
    assert.ok(error instanceof Forbidden);
    assert.equal(error.code, "human_session_required");
    assert.notEqual(error.nextStep, "");
  }
});

test("what another organization owns is not found, and nobody is told why a token is none", async () => {
  const record = await published(client());
  for (const read of [
    client("stranger").environments.get(api.scope),
    client("stranger").schedules.get(api.scope, record.schedule_id),
    client("stranger").schedules.list(api.scope),
  ]) {
    const error = await failing(read);
    assert.ok(error instanceof NotFound);
    assert.equal(error.code, "environment_not_found");
  }
  assert.equal((await failing(client().schedules.get(api.scope, randomUUID()))).code, "schedule_not_found");
  assert.equal((await failing(client().schedules.getVersion(api.scope, randomUUID()))).code, "version_not_found");
  const nobody = new Client(api.address, { token: "no.such.token" });
  assert.ok((await failing(nobody.environments.get(api.scope))) instanceof Unauthenticated);
});

test("all faults of a configuration are told at once", async () => {
  const us = client();
  const request = await publication(us, { configuration: { name: "" } });
  const error = await failing(us.schedules.publish(api.scope, request, randomUUID()));
  assert.ok(error instanceof Invalid && !(error instanceof InvalidSchedule));
  const places = error.faults.map((each) => each.pointer);
  for (const place of ["/configuration/name", "/configuration/calendar"])
    assert.ok(places.includes(place), places.join());
});

test("list takes a limit, a cursor and include_retired, and goes on with next_cursor", async () => {
  const us = client();
  const made = [];
  for (let each = 0; each < 27; each += 1) made.push((await published(us)).schedule_id);
  const retired = await published(us);
  await us.schedules.retire(api.scope, await reviewed(us, retired), randomUUID());

  const page = await us.schedules.list(api.scope);
  assert.equal(page.schedules.length, 25, "unless told otherwise");
  for (const limit of [0, 51, Number.NaN]) {
    const error = await failing(us.schedules.list(api.scope, { limit }));
    assert.ok(error instanceof Invalid, String(error));
  }
  const walk = async (options) => {
    const found = [];
    for (let after = null; ;) {
      const { schedules, next_cursor } = await us.schedules.list(api.scope, { ...options, after });
      assert.ok(schedules.length <= options.limit);
      found.push(...schedules);
      if (next_cursor === null) return found;
      after = next_cursor;
    }
  };
  const shown = await walk({ limit: 10 });
  const ids = shown.map((each) => each.schedule_id);
  assert.deepEqual(ids, [...new Set(ids)].sort());
  assert.ok(made.every((each) => ids.includes(each)));
  assert.ok(!ids.includes(retired.schedule_id));
  const all = (await walk({ limit: 50, include_retired: true })).map((each) => each.schedule_id);
  assert.ok(all.includes(retired.schedule_id));
});

test("every record and directory entry has its runtime observations", async () => {
  const us = client();
  const record = await published(us);
  const listed = (await us.schedules.list(api.scope, { limit: 50 })).schedules;
  for (const each of [record, await us.schedules.get(api.scope, record.schedule_id), ...listed]) {
    assert.equal(typeof each.runtime.state, "string");
    assert.equal(each.runtime.generation, each.activation?.generation ?? 0);
    assert.ok(["undefined", "string"].includes(typeof each.runtime.observed_at));
    assert.equal(each.execution_ready, true);
  }
});

/** A way to the API that loses the answer, or the request, of the first mutation. */
async function lossy(t, { answer }) {
  let mutations = 0;
  const { address } = await serve(t, (response, { method, target, headers, body }) => {
    const lost = headers["idempotency-key"] !== undefined && (mutations += 1) === 1;
    if (lost && !answer) return response.socket.destroy();
    const { hostname, port } = new URL(api.address);
    const onward = http.request({ hostname, port, method, path: target, headers, agent: false }, (answered) => {
      if (lost) {
        answered.resume();
        return answered.on("end", () => response.socket.destroy());
      }
      response.writeHead(answered.statusCode, answered.headers);
      answered.pipe(response);
    });
    onward.end(body);
  });
  return { us: client("human", address), sent: () => mutations };
}

test("a lost answer is recovered by the same key and body", async (t) => {
  for (const key of [
    randomUUID(),
    `${randomUUID()}a/b c?d#e%2F&f=g`,
    `${randomUUID()}/..`,
    randomUUID().padEnd(200, "~"),
  ]) {
    const { us, sent } = await lossy(t, { answer: true });
    const request = await publication(us);
    const unknown = await failing(us.schedules.publish(api.scope, request, key));
    assert.ok(unknown instanceof OutcomeUnknown, unknown.stack);
    assert.equal(sent(), 1);
    assert.deepEqual([unknown.key, unknown.request], [key, request]);
    const found = await us.receipts.get(api.scope, unknown.key);
    const again = await us.schedules.publish(api.scope, unknown.request, unknown.key);
    assert.deepEqual([again.replayed, again.receipt_id], [true, found.receipt_id]);
    assert.equal((await us.schedules.get(api.scope, request.schedule_id)).head.revision, 1);
    const error = await failing(us.schedules.publish(api.scope, await publication(us), key));
    assert.equal(error.code, "idempotency_key_reused");
  }
});

test("a lost request leaves no receipt and is done once when repeated", async (t) => {
  const { us } = await lossy(t, { answer: false });
  const key = randomUUID();
  const unknown = await failing(us.schedules.publish(api.scope, await publication(us), key));
  assert.ok(unknown instanceof OutcomeUnknown);
  const none = await failing(us.receipts.get(api.scope, key));
  assert.ok(none instanceof NotFound);
  assert.equal(none.code, "receipt_not_found");
  assert.equal((await us.schedules.publish(api.scope, unknown.request, key)).replayed, false);
});

test("a receipt confirms its operation while the activation has changed since", async () => {
  const us = client();
  const record = await published(us);
  const [key, request] = [randomUUID(), await reviewed(us, record, { enabled: true })];
  await us.schedules.setEnabled(api.scope, request, key);
  const active = await us.schedules.get(api.scope, record.schedule_id);
  await change(us, active, false);
  const again = await us.schedules.setEnabled(api.scope, request, key);
  assert.deepEqual([again.replayed, again.generation, again.enabled], [true, 1, true]);
  assert.deepEqual(await us.receipts.get(api.scope, key), again);
  assert.equal((await us.schedules.get(api.scope, record.schedule_id)).activation.enabled, false);
});

test("a reset can refuse recovery", async () => {
  const us = client();
  const [key, request] = [randomUUID(), await publication(us)];
  await us.schedules.publish(api.scope, request, key);
  const { org_id, environment_id } = api.scope;
  const { expected_environment_epoch, expected_reset_generation } = request;
  const reset = await fetch(
    `${api.address}/v1/organizations/${org_id}/environments/${environment_id}/authority/reset`,
    {
      method: "POST",
      headers: {
        Authorization: `Bearer ${api.tokens.operator}`,
        "Content-Type": "application/json",
        "Idempotency-Key": randomUUID(),
      },
      body: JSON.stringify({ because: "tested", expected_environment_epoch, expected_reset_generation }),
    },
  );
  assert.equal(reset.status, 201, await reset.text());
  const error = await failing(us.schedules.publish(api.scope, request, key));
  assert.ok(error instanceof Conflict);
  assert.equal(error.code, "environment_reset");
});
