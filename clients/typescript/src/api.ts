// Written by types_from_openapi.py from the OpenAPI page. Do not change it by hand: change the API, and write it again.

/**
 * A configuration, to become the next version of a schedule. `expected_revision` is its head, 0 for the first version.
 */
export interface PublishRequest {
  /** The environment's `authority_epoch` as it was reviewed. At least 0 and at most 2147483647. */
  readonly expected_environment_epoch: number;
  /** The environment's `reset_generation` as it was reviewed. At least 0 and at most 2147483647. */
  readonly expected_reset_generation: number;
  /** A UUID in its usual spelling. */
  readonly schedule_id: string;
  /** The head's revision as it was reviewed; 0 for the first version. At least 0 and at most 2147483647. */
  readonly expected_revision: number;
  readonly configuration: Configuration;
}

/** A schedule's configuration: exactly these four parts, and nothing is inferred. */
export interface Configuration {
  readonly name: string;
  readonly calendar: Calendar;
  readonly policy: Policy;
  readonly run: RunRequest;
}

/** When it is due. Local times are those of the named zone, its changes of the clock included. */
export interface Calendar {
  /** An exact IANA name. */
  readonly timezone: string;
  /** [] where there is none; never null. */
  readonly calendars: readonly CalendarRule[];
  /** [] where there is none; never null. */
  readonly intervals: readonly IntervalRule[];
  /** RFC 3339 in UTC, ending in Z. */
  readonly start_at: string;
  /** RFC 3339 in UTC, ending in Z. */
  readonly end_at: string;
}

/** A local time is selected when all fields match. Sunday is 0, Saturday 6. Without `year`, every year. */
export interface CalendarRule {
  /** Ordered, disjoint and within the bounds of the field. */
  readonly second: readonly Range[];
  /** Ordered, disjoint and within the bounds of the field. */
  readonly minute: readonly Range[];
  /** Ordered, disjoint and within the bounds of the field. */
  readonly hour: readonly Range[];
  /** Ordered, disjoint and within the bounds of the field. */
  readonly day_of_month: readonly Range[];
  /** Ordered, disjoint and within the bounds of the field. */
  readonly month: readonly Range[];
  /** Ordered, disjoint and within the bounds of the field. */
  readonly day_of_week: readonly Range[];
  /** Ordered, disjoint and within the bounds of the field. */
  readonly year?: readonly Range[];
}

/** Every `step`-th value from `start` through `end`. */
export interface Range {
  /** At least 0 and at most 9999. */
  readonly start: number;
  /** At least 0 and at most 9999. */
  readonly end: number;
  /** At least 1 and at most 9007199254740991. */
  readonly step: number;
}

/** UTC instants at the epoch plus the offset plus whole intervals. */
export interface IntervalRule {
  /** At least 1 and at most 316224000. */
  readonly every_seconds: number;
  /** Less than every_seconds. At least 0 and less than 316224000. */
  readonly offset_seconds: number;
}

/** What happens when a due instant cannot simply start. */
export interface Policy {
  /** What happens to an instant that falls due while a run holds every slot. */
  readonly overlap: Overlap;
  /** How late an instant may still be handled. At least 10 and at most 86400. */
  readonly catchup_window_seconds: number;
  /** Whether the first run that fails or times out ends the activation in review. */
  readonly pause_on_failure: boolean;
  /** 1 where it is left out; not with overlap `allow`. At least 1 and at most 1000. */
  readonly max_concurrent_runs?: number;
}

/** What happens to an instant that falls due while the schedule's runs hold every slot. */
export type Overlap = "skip" | "buffer_one" | "buffer_all" | "allow";

/** What every occurrence asks for. A calendar extends no grant, no consent and no content's lifetime. */
export interface RunRequest {
  /** The exact agent version. */
  readonly agent_version: string;
  /** What it reads. */
  readonly input: string;
  /** Where it writes. */
  readonly output_target: string;
  /** The workload grants that it needs. */
  readonly grants: readonly string[];
  /** null for test_simulation only. */
  readonly budget_id: string | null;
  readonly usage_class: UsageClass;
}

/** What kind of authority and funding a run needs (DESIGN.md, section 8). */
export type UsageClass = "test_simulation" | "test_compute" | "live";

/** Which exact version shall be enabled, or no longer. */
export interface ActivateRequest {
  /** The environment's `authority_epoch` as it was reviewed. At least 0 and at most 2147483647. */
  readonly expected_environment_epoch: number;
  /** The environment's `reset_generation` as it was reviewed. At least 0 and at most 2147483647. */
  readonly expected_reset_generation: number;
  readonly version: VersionReference;
  /** The activation's generation as it was reviewed; 0 without one. At least 0 and at most 2147483647. */
  readonly expected_generation: number;
  /** true enables this version, false pauses the one that is enabled. */
  readonly enabled: boolean;
}

/** The exact version that was reviewed, as `reference` of a record shows it. */
export interface VersionReference {
  /** A UUID in its usual spelling. */
  readonly schedule_id: string;
  /** At least 1 and at most 2147483647. */
  readonly revision: number;
  /** `sha256:` and 64 hexadecimal digits. */
  readonly digest: string;
}

/**
 * The end of a schedule's identity. `expected_generation` is the activation that was reviewed, 0 where there is none.
 */
export interface RetireRequest {
  /** The environment's `authority_epoch` as it was reviewed. At least 0 and at most 2147483647. */
  readonly expected_environment_epoch: number;
  /** The environment's `reset_generation` as it was reviewed. At least 0 and at most 2147483647. */
  readonly expected_reset_generation: number;
  readonly version: VersionReference;
  /** The activation's generation as it was reviewed; 0 without one. At least 0 and at most 2147483647. */
  readonly expected_generation: number;
}

/** An environment. Read it before a change: its two numbers are preconditions of every mutation. */
export interface Environment {
  readonly org_id: string;
  readonly environment_id: string;
  /** `simulation`, `test` or `live`: which usage classes may run. */
  readonly mode: string;
  /** Send it as expected_environment_epoch. */
  readonly authority_epoch: number;
  /** Send it as expected_reset_generation. */
  readonly reset_generation: number;
  /** null where nothing can be enabled. */
  readonly runtime_profile: string | null;
  /**
   * Whether both runtime workers are there. This is no proof that an installed worker has ever completed a scheduled
   * run.
   */
  readonly execution_ready: boolean;
}

/**
 * The proof of one accepted operation.
 *
 * It confirms that this operation was completed. It is not the present state: the activation may have changed since.
 */
export interface Receipt {
  readonly receipt_id: string;
  /**
   * `publish`, `enable`, `pause`, `retire`, `trigger` or `cancel_run`; of scheduler v0 `v0_create`, `v0_update`,
   * `v0_pause`, `v0_resume` or `v0_disable`; or an act of an operator, whose receipt has parts of its own.
   */
  readonly operation: string;
  /** Not of most acts of operators. */
  readonly schedule_id?: string | null;
  /** The id of the version that it was about, to be read exactly. Not of `cancel_run`. */
  readonly resource_id?: string | null;
  /** The version that it was about. Not of `cancel_run`. */
  readonly reference?: Reference | null;
  /** The activation that it made, or that a triggered run is of. Not of `publish`. */
  readonly generation?: number | null;
  /**
   * What an `enable`, a `pause` or a `retire` made of it; of scheduler v0, whether the schedule fires now. A one-shot
   * whose instant has passed does not.
   */
  readonly enabled?: boolean | null;
  /** The activation before the one that was made; null where there was none, or none was made. */
  readonly ended_generation?: number | null;
  /** The run that was triggered, or asked to end. */
  readonly run_id?: string | null;
  /** Of a triggered run: how the ledger tells it from a due instant. */
  readonly trigger?: string | null;
  /** Of a triggered run: the second that it is for. */
  readonly nominal_time?: string | null;
  /** The run's workflow at Temporal. */
  readonly workflow_id?: string | null;
  /** What a person should know, as sentences. They refused nothing. */
  readonly warnings: readonly string[];
  /** The environment's authority epoch at that moment. */
  readonly environment_epoch: number;
  /** The environment's reset generation at that moment. */
  readonly reset_generation: number;
  readonly created_at: string;
  /** True where the operation was carried out by an earlier request with this key. */
  readonly replayed: boolean;
}

/** One exact version, as a person reviewed it. */
export interface Reference {
  readonly schedule_id: string;
  /** At least 1. */
  readonly revision: number;
  /** SHA-256 of the canonical JSON (RFC 8785). */
  readonly digest: string;
}

/** A schedule at one version. No preview of occurrences is implied by these fields. */
export interface ScheduleRecord {
  readonly schedule_id: string;
  /** The id of this exact version. */
  readonly resource_id: string;
  /** Send it as `version` to change the activation of exactly this version. */
  readonly reference: Reference;
  /** The newest version. It is not necessarily the one that is enabled. */
  readonly head: Reference;
  /** Whether its identity has ended, which is final. */
  readonly retired: boolean;
  readonly published_at: string;
  readonly published_by: string;
  /** null before the first; expected_generation is 0 then, else its `generation`. */
  readonly activation: Activation | null;
  readonly runtime: Runtime;
  /** Whether both runtime workers are there. It does not establish that this schedule is active. */
  readonly execution_ready: boolean;
  /** Why this release cannot use a version that is shown or enabled; there only where it cannot. */
  readonly problem?: string | null;
  /** As it was submitted. */
  readonly configuration: { readonly [name: string]: unknown };
}

/** Which version is enabled or paused. It may be older than the head: look here before pausing. */
export interface Activation {
  readonly version: Reference;
  /** Send it as expected_generation. At least 1. */
  readonly generation: number;
  /** Whether this version fires, unless `runtime` says why it does not. */
  readonly enabled: boolean;
  readonly changed_at: string;
  readonly changed_by: string;
}

/** What the controller observed last. */
export interface Runtime {
  /**
   * `unconfigured`: the environment's mode has no runtime profile, whatever its activation says. `pending`: the
   * controller has not established active execution of this generation yet. `active`: the controller reports it active;
   * each occurrence still needs authority of its own when it is due. `paused`: it is stopped, or was never activated.
   * `review`: an enabled schedule stopped or needs review; it does not resume by itself, and a new activation
   * generation is required. `stopping`: pause or retirement is recorded, and cleaning up remains. `error`: the
   * controller could not establish what was asked for.
   */
  readonly state: "unconfigured" | "pending" | "active" | "paused" | "review" | "stopping" | "error" | (string & {});
  /** The activation's generation, or 0 without one. At least 0. */
  readonly generation: number;
  /** The controller's last check, a failed one too. It is not proof of a successful execution. */
  readonly observed_at?: string | null;
  /** Why it is in `review` or in `error`, as a sentence. */
  readonly reason?: string | null;
}

/** A page of schedules, ordered by UUID. */
export interface Directory {
  readonly schedules: readonly DirectoryEntry[];
  /** Send it as `after` for the next page; null on the last. */
  readonly next_cursor: string | null;
}

/** A schedule at its head, with its name in place of the configuration. */
export interface DirectoryEntry {
  readonly schedule_id: string;
  /** The id of this exact version. */
  readonly resource_id: string;
  /** Send it as `version` to change the activation of exactly this version. */
  readonly reference: Reference;
  /** The newest version. It is not necessarily the one that is enabled. */
  readonly head: Reference;
  /** Whether its identity has ended, which is final. */
  readonly retired: boolean;
  readonly published_at: string;
  readonly published_by: string;
  /** null before the first; expected_generation is 0 then, else its `generation`. */
  readonly activation: Activation | null;
  readonly runtime: Runtime;
  /** Whether both runtime workers are there. It does not establish that this schedule is active. */
  readonly execution_ready: boolean;
  /** Why this release cannot use a version that is shown or enabled; there only where it cannot. */
  readonly problem?: string | null;
  readonly name: string;
  /**
   * The next instant of what is enabled; null where nothing is, or nothing is due any more. Whether it will run is
   * decided then.
   */
  readonly next_due: string | null;
}

/** A refusal (RFC 9457). */
export interface ProblemDocument {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  /** Stable, for programs. */
  readonly code: string;
  readonly next_step: string;
  /** All that was found wrong, at once. */
  readonly errors: readonly ProblemPart[];
  /** The same as in the header X-Request-Id and in the log. */
  readonly request_id: string;
}

/** One thing that is wrong. */
export interface ProblemPart {
  /** The place as a JSON pointer: into the body, or `/query/…` and `/path/…` for a parameter. */
  readonly pointer: string;
  readonly code: string;
  readonly detail: string;
  /** What admission looked at; there only where it objects to what shall be enabled. */
  readonly evidence?: { readonly [name: string]: unknown };
}

/**
 * What an answer has to have to be believed. `?` before a shape: it may be left out; `|null` behind it: it may be null;
 * `[]`: a list of it. A name is another of these shapes.
 */
export const shapes = {
  Environment: {
    org_id: "string",
    environment_id: "string",
    mode: "string",
    authority_epoch: "integer",
    reset_generation: "integer",
    runtime_profile: "string|null",
    execution_ready: "boolean",
  },
  Receipt: {
    receipt_id: "string",
    operation: "string",
    schedule_id: "?string|null",
    resource_id: "?string|null",
    reference: "?Reference|null",
    generation: "?integer|null",
    enabled: "?boolean|null",
    ended_generation: "?integer|null",
    run_id: "?string|null",
    trigger: "?string|null",
    nominal_time: "?instant|null",
    workflow_id: "?string|null",
    warnings: "string[]",
    environment_epoch: "integer",
    reset_generation: "integer",
    created_at: "instant",
    replayed: "boolean",
  },
  Reference: {
    schedule_id: "string",
    revision: "integer",
    digest: "string",
  },
  ScheduleRecord: {
    schedule_id: "string",
    resource_id: "string",
    reference: "Reference",
    head: "Reference",
    retired: "boolean",
    published_at: "instant",
    published_by: "string",
    activation: "Activation|null",
    runtime: "Runtime",
    execution_ready: "boolean",
    problem: "?string|null",
    configuration: "object",
  },
  Activation: {
    version: "Reference",
    generation: "integer",
    enabled: "boolean",
    changed_at: "instant",
    changed_by: "string",
  },
  Runtime: {
    state: "string",
    generation: "integer",
    observed_at: "?instant|null",
    reason: "?string|null",
  },
  Directory: {
    schedules: "DirectoryEntry[]",
    next_cursor: "string|null",
  },
  DirectoryEntry: {
    schedule_id: "string",
    resource_id: "string",
    reference: "Reference",
    head: "Reference",
    retired: "boolean",
    published_at: "instant",
    published_by: "string",
    activation: "Activation|null",
    runtime: "Runtime",
    execution_ready: "boolean",
    problem: "?string|null",
    name: "string",
    next_due: "instant|null",
  },
} as const satisfies { readonly [name: string]: { readonly [member: string]: string } };

/** What the calls of the client answer, by the name of the shape. */
export interface Answers {
  readonly Environment: Environment;
  readonly Receipt: Receipt;
  readonly ScheduleRecord: ScheduleRecord;
  readonly Directory: Directory;
}

/** Every problem code that the API answers with, and the class of error that it is thrown as. */
export const codes = {
  agent_class_not_found: "NotFound",
  agent_class_not_schedulable: "Conflict",
  agent_missing: "NotAdmissible",
  agent_not_ready: "NotAdmissible",
  agent_not_schedulable: "NotAdmissible",
  agent_offline: "NotAdmissible",
  agent_withdrawn: "NotAdmissible",
  already_paused: "Conflict",
  approval_expired: "NotAdmissible",
  approval_missing: "NotAdmissible",
  authority_unavailable: "Unavailable",
  binding_mismatch: "Conflict",
  binding_missing: "Conflict",
  body_too_large: "TooLarge",
  breaker_open: "NotAdmissible",
  budget_exhausted: "NotAdmissible",
  budget_missing: "NotAdmissible",
  budget_usage_class: "NotAdmissible",
  catalog_unavailable: "Unavailable",
  ceiling_exceeded: "NotAdmissible",
  changed_meanwhile: "Conflict",
  clock_skew: "Unavailable",
  commit_lost: "ServerFailed",
  consent_expired: "NotAdmissible",
  content_unavailable: "Unavailable",
  dead_letter_not_found: "NotFound",
  digest_conflict: "Conflict",
  endpoint_not_found: "NotFound",
  endpoint_stopped: "Conflict",
  environment_epoch_changed: "Conflict",
  environment_not_found: "NotFound",
  environment_reset: "Conflict",
  execution_unavailable: "Unavailable",
  generation_conflict: "Conflict",
  grant_expired: "NotAdmissible",
  grant_missing: "NotAdmissible",
  grant_revoked: "NotAdmissible",
  headers_too_large: "TooLarge",
  human_session_required: "Forbidden",
  idempotency_key_missing: "BadRequest",
  idempotency_key_reused: "Conflict",
  input_expired: "NotAdmissible",
  input_unreadable: "NotAdmissible",
  internal_error: "ServerFailed",
  invalid_cursor: "BadRequest",
  invalid_json: "BadRequest",
  invalid_limit: "Invalid",
  invalid_parameter: "Invalid",
  invalid_principal: "Forbidden",
  invalid_profile: "BadRequest",
  invalid_schedule: "Invalid",
  invalid_window: "Invalid",
  keys_unavailable: "Unavailable",
  method_not_allowed: "BadRequest",
  misconfigured: "ServerFailed",
  not_enabled: "Conflict",
  not_in_calendar: "NotAdmissible",
  not_paused: "Conflict",
  other_contract: "Conflict",
  outcome_conflict: "Conflict",
  output_forbidden: "NotAdmissible",
  output_missing: "NotAdmissible",
  overlap: "Conflict",
  owes_less: "Conflict",
  path_not_found: "NotFound",
  path_too_long: "TooLarge",
  payment_per_run: "NotAdmissible",
  payment_x402: "NotAdmissible",
  principal_left: "NotAdmissible",
  profile_not_found: "NotFound",
  query_too_long: "TooLarge",
  rate_limited: "TooManyRequests",
  receipt_not_found: "NotFound",
  request_timeout: "BadRequest",
  revision_conflict: "Conflict",
  run_at_passed: "Conflict",
  run_ended: "Conflict",
  run_not_found: "NotFound",
  runtime_unconfigured: "Conflict",
  schedule_not_found: "NotFound",
  schedule_retired: "Conflict",
  scope_missing: "Forbidden",
  start_event_not_found: "NotFound",
  stopped_by_operator: "NotAdmissible",
  thread_not_found: "NotFound",
  too_many_endpoints: "Conflict",
  unauthenticated: "Unauthenticated",
  unsupported_media_type: "BadRequest",
  usage_class_mismatch: "NotAdmissible",
  version_conflict: "Conflict",
  version_not_found: "NotFound",
  version_unusable: "NotAdmissible",
  wallet_collection_failed: "NotAdmissible",
  wallet_unpaid_limit: "NotAdmissible",
} as const;

/** A code of a problem. A newer server may know more of them. */
export type ProblemCode = keyof typeof codes | (string & {});
