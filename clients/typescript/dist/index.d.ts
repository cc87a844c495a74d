/** The TypeScript client of Horarium: `new Client(address, { token })`, what its calls answer, and how they fail. */
export type { ScheduleReceipt } from "./answers.js";
export type * from "./api.js";
export { codes } from "./api.js";
export { ANSWER_WITHIN_MS, type Scope, type Token } from "./calls.js";
export { Client, type ClientOptions, type Environments, type GetOptions, type ListOptions, type Receipts, type Schedules, } from "./client.js";
export { BadRequest, Conflict, type Fault, Forbidden, HorariumError, Invalid, InvalidSchedule, InvalidScope, Misconfigured, NotAdmissible, NotFound, type Objection, OutcomeUnknown, Problem, type ProblemParts, ServerFailed, TooLarge, TooManyRequests, Unauthenticated, Unavailable, UnexpectedAnswer, Unreachable, } from "./errors.js";
