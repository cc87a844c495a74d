/** What calls answer: documents as the server sent them, held against the shapes of the OpenAPI page. */
import { type Answers, type Receipt, type Reference } from "./api.js";
/**
 * A completed operation on a schedule. It confirms that one operation; the current activation may have changed afterwards.
 *
 * `replayed` tells that the operation had been carried out before, by the same key and body. `resource_id` leads to the
 * version that it was about: `client.schedules.getVersion(scope, receipt.resource_id)`.
 */
export interface ScheduleReceipt extends Receipt {
    readonly schedule_id: string;
    readonly resource_id: string;
    readonly reference: Reference;
}
/** What each call answers, by the name of its shape. */
export interface Kinds extends Answers {
    readonly ScheduleReceipt: ScheduleReceipt;
}
/**
 * An answer as its type. Throws `UnexpectedAnswer` where a part that the type promises is missing or is something else.
 *
 * What we do not know is let through: a newer server may say more.
 */
export declare function believed<K extends keyof Kinds>(kind: K, document: unknown, status: number): Kinds[K];
