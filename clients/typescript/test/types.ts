// Read by the compiler alone (`npm run check`): the calls of the contract have these types, and mistakes have none.

import { Client, HorariumError, OutcomeUnknown, Problem } from "../src/index.js";
import type { ActivateRequest, Calendar, Policy, RetireRequest, RunRequest } from "../src/index.js";

declare const org_id: string;
declare const environment_id: string;
declare const schedule_id: string;
declare const calendar: Calendar;
declare const policy: Policy;
declare const run: RunRequest;
declare const publicationKey: string;
declare const activationKey: string;

export async function asTheContractShowsIt(): Promise<void> {
  const client = new Client("https://horarium.example", { token: async () => "token" });
  const scope = { org_id, environment_id };
  const environment = await client.environments.get(scope);
  const published = await client.schedules.publish(scope, {
    schedule_id,
    expected_revision: 0,
    expected_environment_epoch: environment.authority_epoch,
    expected_reset_generation: environment.reset_generation,
    configuration: { name: "Daily review", calendar, policy, run },
  }, publicationKey);
  const record = await client.schedules.getVersion(scope, published.resource_id);
  await client.schedules.setEnabled(scope, {
    version: record.reference,
    expected_generation: record.activation?.generation ?? 0,
    expected_environment_epoch: environment.authority_epoch,
    expected_reset_generation: environment.reset_generation,
    enabled: true,
  }, activationKey);
  const page = await client.schedules.list(scope, { limit: 50, after: null, include_retired: true });
  const name: string | undefined = page.schedules[0]?.name;
  void name;
}

export async function mistakes(client: Client): Promise<void> {
  const scope = { org_id, environment_id };
  // @ts-expect-error An option is named as the API has it.
  await client.schedules.list(scope, { includeRetired: true });
  const retirement: RetireRequest = {
    version: { schedule_id, revision: 1, digest: "" },
    expected_generation: 0,
    expected_environment_epoch: 1,
    expected_reset_generation: 1,
  };
  // @ts-expect-error A mutation needs a key of the caller's.
  await client.schedules.retire(scope, retirement);
  // @ts-expect-error `enabled` is explicit.
  const change: ActivateRequest = { ...retirement };
  // @ts-expect-error A null family of rules is invalid.
  const noIntervals: Calendar = { ...calendar, intervals: null };
  // @ts-expect-error There is no such policy.
  const policy: Policy = { overlap: "replace", catchup_window_seconds: 60, pause_on_failure: false };
  void [change, noIntervals, policy];
  const record = await client.schedules.get(scope, schedule_id);
  // @ts-expect-error There may be no activation.
  void record.activation.generation;
}

export function failures(error: unknown): string {
  if (error instanceof OutcomeUnknown) return error.key;
  if (error instanceof Problem && error.code === "revision_conflict") return `${error.status + 1}`;
  return error instanceof HorariumError ? `${error.code} ${error.problem?.request_id}` : "";
}
