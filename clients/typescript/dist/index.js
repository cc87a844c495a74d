/** The TypeScript client of Horarium: `new Client(address, { token })`, what its calls answer, and how they fail. */
export { codes } from "./api.js";
export { ANSWER_WITHIN_MS } from "./calls.js";
export { Client, } from "./client.js";
export { BadRequest, Conflict, Forbidden, HorariumError, Invalid, InvalidSchedule, InvalidScope, Misconfigured, NotAdmissible, NotFound, OutcomeUnknown, Problem, ServerFailed, TooLarge, TooManyRequests, Unauthenticated, Unavailable, UnexpectedAnswer, Unreachable, } from "./errors.js";
