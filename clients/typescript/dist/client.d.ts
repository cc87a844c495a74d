/** The client itself: an address, a token, and the calls by what they are about. */
import type { ScheduleReceipt } from "./answers.js";
import type { ActivateRequest, Directory, Environment, PublishRequest, Receipt, RetireRequest, ScheduleRecord } from "./api.js";
import { Caller, type Scope, type Token } from "./calls.js";
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
export declare class Client {
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
    constructor(baseUrl: string, options: ClientOptions);
}
/** Environments: where schedules live, and the numbers that every mutation has to name. */
export declare class Environments {
    #private;
    constructor(caller: Caller);
    /**
     * Read an environment. Do so before a publication or an activation, and submit the two numbers that it shows:
     * `authority_epoch` as `expected_environment_epoch`, `reset_generation` as `expected_reset_generation`.
     *
     * `execution_ready` does not establish that an installed worker has completed a scheduled run.
     *
     * @throws {NotFound} Where there is none that the caller may see, and every other `Problem`, `Unreachable` and
     *   `UnexpectedAnswer`; `InvalidScope` before anything is sent.
     */
    get(scope: Scope): Promise<Environment>;
}
/**
 * Schedules of an environment. `scope` is `{ org_id, environment_id }` in every call.
 *
 * Mutations take the request as the API has it and an idempotency key of the caller's: 1 to 200 printable ASCII characters.
 * Choose the key before the first attempt and keep it, with the reviewed request, account and environment, until the outcome
 * is known. They are sent once.
 */
export declare class Schedules {
    #private;
    constructor(caller: Caller);
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
    publish(scope: Scope, request: PublishRequest, idempotencyKey: string): Promise<ScheduleReceipt>;
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
    setEnabled(scope: Scope, request: ActivateRequest, idempotencyKey: string): Promise<ScheduleReceipt>;
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
    retire(scope: Scope, request: RetireRequest, idempotencyKey: string): Promise<ScheduleReceipt>;
    /**
     * The record at the publication head, or at one revision. The head can differ from the version that is enabled.
     *
     * @throws {NotFound} Where there is none that the caller may see, and every other `Problem`, `Unreachable` and
     *   `UnexpectedAnswer`; `InvalidSchedule` and `InvalidScope` before anything is sent.
     */
    get(scope: Scope, scheduleId: string, options?: GetOptions): Promise<ScheduleRecord>;
    /**
     * The record at one exact immutable version, by the `resource_id` of its receipt or record.
     *
     * @throws {NotFound} Where there is none that the caller may see, and every other `Problem`, `Unreachable` and
     *   `UnexpectedAnswer`; `InvalidSchedule` and `InvalidScope` before anything is sent.
     */
    getVersion(scope: Scope, resourceId: string): Promise<ScheduleRecord>;
    /**
     * A page of the directory, ordered by UUID. Continue with `{ after: page.next_cursor }` until that is null.
     *
     * @throws {Problem} `Invalid` for a limit or a cursor that is none, and every other one; `Unreachable` and
     *   `UnexpectedAnswer`; `InvalidSchedule` for an option that there is not, and `InvalidScope`, before anything is sent.
     */
    list(scope: Scope, options?: ListOptions): Promise<Directory>;
}
/** Receipts of the caller's own operations. */
export declare class Receipts {
    #private;
    constructor(caller: Caller);
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
    get(scope: Scope, idempotencyKey: string): Promise<Receipt>;
}
