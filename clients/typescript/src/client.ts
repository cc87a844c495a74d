/** The client itself: an address, a token, and the calls by what they are about. */

import type { ScheduleReceipt } from "./answers.js";
import type {
  ActivateRequest,
  Directory,
  Environment,
  PublishRequest,
  Receipt,
  RetireRequest,
  ScheduleRecord,
} from "./api.js";
import { ANSWER_WITHIN_MS, Caller, changing, reading, type Part, type Scope, type Token } from "./calls.js";
import { InvalidSchedule, isObject, Misconfigured } from "./errors.js";

/** How a client is set up. */
export interface ClientOptions {
  /** A bearer token, or a function that gives one, asynchronously or not; it is asked anew for each call. */
  readonly token: Token;
  /** Milliseconds from a call's token until its whole answer is there; 30,000 unless told otherwise. */
  readonly answerWithinMs?: number;
}

/** Which schedules are listed. */
export interface ListOptions {
  /** How many at the most: 1 to 50, 25 unless told otherwise. */
  readonly limit?: number;
  /** The `next_cursor` of the page before, a schedule's UUID. */
  readonly after?: string | null;
  /** Whether retired schedules are listed too; they are not unless told otherwise. */
  readonly include_retired?: boolean;
}

/** Which version of a schedule is read. */
export interface GetOptions {
  /** One revision, counted from 1; without it the head. */
  readonly revision?: number;
}

/**
 * Calls the HTTP API of Horarium.
 *
 *     const client = new Client("https://horarium.example", { token: fetchToken });
 *     const environment = await client.environments.get(scope);
 *     const published = await client.schedules.publish(scope, request, publicationKey);
 *     const record = await client.schedules.getVersion(scope, published.resource_id);
 *
 * A request is copied when a method is called, before the token is awaited, so that later changes of the caller's reach
 * nothing. Nothing is retried, reads neither. A mutation whose answer is lost rejects with `OutcomeUnknown`, which says
 * what to do. Whatever else goes wrong rejects with a class of its own below `HorariumError`. There is nothing to close.
 */
export class Client {
  /** Environments: where schedules live, and the numbers that every mutation has to name. */
  readonly environments: Environments;
  /** Schedules of an environment. */
  readonly schedules: Schedules;
  /** Receipts of the caller's own operations. */
  readonly receipts: Receipts;

  /**
   * @param baseUrl The server's address, http:// or https://, without the `/v1/…`.
   * @throws {Misconfigured} For an address that is none, a time that is none, or where no token is named.
   */
  constructor(baseUrl: string, options: ClientOptions) {
    if (!isObject(options) || !("token" in options)) {
      // Whoever writes JavaScript has no compiler to say so.
      throw new Misconfigured('A client is given its token, as in new Client("http://127.0.0.1:8080", { token }).');
    }
    const caller = new Caller(baseUrl, options.token, options.answerWithinMs ?? ANSWER_WITHIN_MS);
    this.environments = new Environments(caller);
    this.schedules = new Schedules(caller);
    this.receipts = new Receipts(caller);
  }
}

/** Environments: where schedules live, and the numbers that every mutation has to name. */
export class Environments {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /**
   * Read an environment. Do so before a publication or an activation, and submit the two numbers that it shows:
   * `authority_epoch` as `expected_environment_epoch`, `reset_generation` as `expected_reset_generation`.
   *
   * `execution_ready` does not establish that an installed worker has completed a scheduled run.
   *
   * @throws {NotFound} Where there is none that the caller may see, and every other `Problem`, `Unreachable` and
   *   `UnexpectedAnswer`; `InvalidScope` before anything is sent.
   */
  async get(scope: Scope): Promise<Environment> {
    return this.#caller.send(reading("reading of the environment", scope, []), "Environment");
  }
}

/**
 * Schedules of an environment. `scope` is `{ org_id, environment_id }` in every call.
 *
 * Mutations take the request as the API has it and an idempotency key of the caller's: 1 to 200 printable ASCII characters.
 * Choose the key before the first attempt and keep it, with the reviewed request, account and environment, until the outcome
 * is known. They are sent once.
 */
export class Schedules {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /**
   * Store a configuration as the next version. It enables nothing, and replaces no enabled version.
   *
   * `expected_revision` is 0 for the first version, else the head that was reviewed. The receipt's `resource_id` leads to
   * the version. A retired schedule cannot be revived by it.
   *
   * @param idempotencyKey The caller's own, for this one change.
   * @throws {OutcomeUnknown} Where it was sent and no answer tells what became of it. Keep the key and the request.
   * @throws {InvalidSchedule} For a request or a key that is none, and `InvalidScope`; nothing was sent.
   * @throws {Problem} Where the server refused it; nothing changed. `Conflict`, code `revision_conflict`, where the head is
   *   another one; `Invalid` with all `faults` of the document. `Unreachable` where nothing was sent.
   */
  async publish(scope: Scope, request: PublishRequest, idempotencyKey: string): Promise<ScheduleReceipt> {
    const call = changing("publication", scope, ["schedules"], request, idempotencyKey);
    return this.#caller.send(call, "ScheduleReceipt");
  }

  /**
   * Enable or pause exactly the version that was reviewed; a human session alone may.
   *
   * `version` is the exact reference, `expected_generation` the activation's, 0 where there is none. Enabling needs
   * `execution_ready` and fires nothing of the past. The enabled version can differ from the head: inspect
   * `record.activation.version` before pausing it.
   *
   * @param idempotencyKey The caller's own, for this one change.
   * @throws {OutcomeUnknown} Where it was sent and no answer tells what became of it. Keep the key and the request.
   * @throws {InvalidSchedule} For a request or a key that is none, and `InvalidScope`; nothing was sent.
   * @throws {Problem} Where the server refused it; nothing changed. `Forbidden`, code `human_session_required`;
   *   `Conflict`, code `generation_conflict`, where the activation is another one; `NotAdmissible` with every objection;
   *   `Unavailable`, code `execution_unavailable`, while a runtime worker is missing. `Unreachable` where nothing was sent.
   */
  async setEnabled(scope: Scope, request: ActivateRequest, idempotencyKey: string): Promise<ScheduleReceipt> {
    return this.#change("change of activation", "activation", scope, request, idempotencyKey);
  }

  /**
   * Retire a schedule for good; a human session alone may. The request is that of `setEnabled` without `enabled`.
   *
   * Versions, receipts and the ledger stay. Publishing another version cannot revive the schedule.
   *
   * @param idempotencyKey The caller's own, for this one change.
   * @throws {OutcomeUnknown} Where it was sent and no answer tells what became of it. Keep the key and the request.
   * @throws {InvalidSchedule} For a request or a key that is none, and `InvalidScope`; nothing was sent.
   * @throws {Problem} Where the server refused it; nothing changed. `Unreachable` where nothing was sent.
   */
  async retire(scope: Scope, request: RetireRequest, idempotencyKey: string): Promise<ScheduleReceipt> {
    return this.#change("retirement", "retirement", scope, request, idempotencyKey);
  }

  /**
   * The record at the publication head, or at one revision. The head can differ from the version that is enabled.
   *
   * @throws {NotFound} Where there is none that the caller may see, and every other `Problem`, `Unreachable` and
   *   `UnexpectedAnswer`; `InvalidSchedule` and `InvalidScope` before anything is sent.
   */
  async get(scope: Scope, scheduleId: string, options: GetOptions = {}): Promise<ScheduleRecord> {
    checkOptions(options, ["revision"]);
    const query = options.revision === undefined ? {} : { revision: String(options.revision) };
    const id = { value: scheduleId, pointer: "/schedule_id", sentence: "A schedule's UUID was expected." };
    const call = reading("reading of the schedule", scope, ["schedules", id], query);
    return this.#caller.send(call, "ScheduleRecord");
  }

  /**
   * The record at one exact immutable version, by the `resource_id` of its receipt or record.
   *
   * @throws {NotFound} Where there is none that the caller may see, and every other `Problem`, `Unreachable` and
   *   `UnexpectedAnswer`; `InvalidSchedule` and `InvalidScope` before anything is sent.
   */
  async getVersion(scope: Scope, resourceId: string): Promise<ScheduleRecord> {
    const id = { value: resourceId, pointer: "/resource_id", sentence: "A version's resource_id was expected." };
    return this.#caller.send(reading("reading of the version", scope, ["schedule-versions", id]), "ScheduleRecord");
  }

  /**
   * A page of the directory, ordered by UUID. Continue with `{ after: page.next_cursor }` until that is null.
   *
   * @throws {Problem} `Invalid` for a limit or a cursor that is none, and every other one; `Unreachable` and
   *   `UnexpectedAnswer`; `InvalidSchedule` for an option that there is not, and `InvalidScope`, before anything is sent.
   */
  async list(scope: Scope, options: ListOptions = {}): Promise<Directory> {
    checkOptions(options, ["limit", "after", "include_retired"]);
    const { limit = 25, after, include_retired = false } = options;
    const query = { limit: String(limit), include_retired: String(include_retired) };
    const asked = after === undefined || after === null ? query : { ...query, after: String(after) };
    return this.#caller.send(reading("listing of schedules", scope, ["schedules"], asked), "Directory");
  }

  async #change(
    operation: string,
    part: string,
    scope: Scope,
    request: unknown,
    key: string,
  ): Promise<ScheduleReceipt> {
    const call = changing(operation, scope, ["schedules", namedSchedule(request), part], request, key);
    return this.#caller.send(call, "ScheduleReceipt");
  }
}

/** Receipts of the caller's own operations. */
export class Receipts {
  readonly #caller: Caller;

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /**
   * The receipt under an idempotency key, to recover an uncertain request.
   *
   * Without one the operation had not been carried out when this was asked; a request that is still on its way may arrive
   * later. A receipt confirms its operation: the current activation may have changed afterwards. Receipts of other
   * principals are not found.
   *
   * @throws {NotFound} Where there is none, and every other `Problem`, `Unreachable` and `UnexpectedAnswer`;
   *   `InvalidSchedule` and `InvalidScope` before anything is sent.
   */
  async get(scope: Scope, idempotencyKey: string): Promise<Receipt> {
    const key = { value: idempotencyKey, pointer: "/key", sentence: "An idempotency key was expected." };
    return this.#caller.send(reading("reading of the receipt", scope, ["receipts", key]), "Receipt");
  }
}

function namedSchedule(request: unknown): Part {
  const version = isObject(request) ? request["version"] : undefined;
  return {
    value: isObject(version) ? version["schedule_id"] : undefined,
    pointer: "/version/schedule_id",
    sentence: "The request names the exact version that was reviewed: {schedule_id, revision, digest}.",
  };
}

/** Refuse options that there are not: a misspelt one would be left out in silence, and another page read. */
function checkOptions(options: object, known: readonly string[]): void {
  const faults = Object.keys(options)
    .filter((name) => !known.includes(name))
    .map((name) => {
      const sentence = `There is no such option; there are ${known.join(", ")}.`;
      return { pointer: `/${name}`, code: "unknown_option", sentence };
    });
  if (faults.length > 0) throw new InvalidSchedule(faults);
}
