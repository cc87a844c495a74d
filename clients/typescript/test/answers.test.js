// What a caller is given: the documents of the API, held against what the types promise.

import assert from "node:assert/strict";
import { test } from "node:test";

import { UnexpectedAnswer } from "horarium";

import {
  CALLS,
  DIRECTORY,
  ENVIRONMENT,
  failing,
  PUBLICATION,
  RECEIPT,
  RECORD,
  SCHEDULE,
  SCOPE,
  serve,
} from "./wire.js";

test("what a newer server says more is kept and disturbs nothing", async (t) => {
  for (const { call, answer } of CALLS) {
    const more = { ...answer, invented_later: { x: 1 } };
    assert.deepEqual(await call((await serve(t, more)).client()), more);
  }
  const record = { ...RECORD, runtime: { ...RECORD.runtime, state: "invented_later" } };
  assert.deepEqual(await (await serve(t, record)).client().schedules.get(SCOPE, SCHEDULE), record);
});

test("a schedule that was never enabled has no activation and no observation", async (t) => {
  const document = { ...RECORD, activation: null, runtime: { state: "paused", generation: 0 } };
  const record = await (await serve(t, document)).client().schedules.get(SCOPE, SCHEDULE);
  assert.equal(record.activation?.generation ?? 0, 0);
  assert.equal(record.runtime.observed_at, undefined);
});

test("a text of any characters arrives as it was sent", async (t) => {
  const names = ["é😀", "\\ud800", "back\\slash \\\\ud800", "\u0000", "__proto__"];
  for (const name of names) {
    const document = { ...RECORD, published_by: name };
    const escaped = JSON.stringify(document).replace(
      /[^\x20-\x7e]/g,
      (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
    const record = await (await serve(t, escaped)).client().schedules.get(SCOPE, SCHEDULE);
    assert.equal(record.published_by, name);
  }
});

test("an answer of another form is told with its place and not believed", async (t) => {
  const { mode: _, ...noMode } = ENVIRONMENT;
  const foreign = [
    [[], "(document)"],
    ["hello", "(document)"],
    [null, "(document)"],
    [{ status: "ok" }, "/org_id"],
    [{ ...ENVIRONMENT, authority_epoch: "many" }, "/authority_epoch"],
    [{ ...ENVIRONMENT, authority_epoch: 1.5 }, "/authority_epoch"],
    [{ ...ENVIRONMENT, authority_epoch: 2 ** 53 }, "/authority_epoch"],
    [{ ...ENVIRONMENT, execution_ready: 1 }, "/execution_ready"],
    [noMode, "/mode"],
  ];
  for (const [answer, place] of foreign) {
    const server = await serve(t, JSON.stringify(answer));
    const error = await failing(server.client().environments.get(SCOPE));
    assert.ok(error instanceof UnexpectedAnswer, String(error));
    assert.ok(error.message.includes(`'${place}'`), error.message);
  }
});

test("what stands within an answer is held against its type too", async (t) => {
  const odd = [
    [{ ...RECORD, published_at: "2026-11-30T12:00:00" }, "/published_at"],
    [{ ...RECORD, activation: { ...RECORD.activation, generation: null } }, "/activation/generation"],
    [{ ...RECORD, activation: undefined }, "/activation"],
    [{ ...RECORD, runtime: { ...RECORD.runtime, observed_at: "soon" } }, "/runtime/observed_at"],
    [{ ...RECORD, configuration: [] }, "/configuration"],
  ];
  for (const [answer, place] of odd) {
    const error = await failing((await serve(t, answer)).client().schedules.get(SCOPE, SCHEDULE));
    assert.ok(error instanceof UnexpectedAnswer && error.message.includes(`'${place}'`), String(error));
  }
  const [entry] = DIRECTORY.schedules;
  const page = { ...DIRECTORY, schedules: [entry, { ...entry, head: {} }] };
  const error = await failing((await serve(t, page)).client().schedules.list(SCOPE));
  assert.ok(error.message.includes("'/schedules/1/head/schedule_id'"), String(error));
});

test("one receipt replayed is told as replayed", async (t) => {
  const server = await serve(t, { ...RECEIPT, replayed: true });
  assert.equal((await server.client().receipts.get(SCOPE, "k")).replayed, true);
  assert.equal((await server.client().schedules.publish(SCOPE, PUBLICATION, "k")).replayed, true);
});
