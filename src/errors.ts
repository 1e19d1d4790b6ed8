/** Whether money moved for a failed call. `unknown`: a settlement is still open. */
export type Charged = boolean | 'unknown';

export interface ParameterError {
  path: string;
  message: string;
}

interface AppErrorOptions {
  charged?: Charged;
  retryAfterSeconds?: number;
  errors?: ParameterError[];
  headers?: Record<string, string>;
  /** What is known although the call failed, for the body. Safe to send. */
  members?: Readonly<Record<string, unknown>> | undefined;
  /** The failure is what was asked for: no operator need look at it. */
  isExpected?: boolean;
  cause?: unknown;
}

/** `detail` is safe to send. Any other thrown value is a bug, logged with its stack and answered as a bare 500. */
export class AppError extends Error {
  readonly status: number;
  readonly code: string;
  readonly charged: Charged;
  readonly retryAfterSeconds: number | undefined;
  readonly errors: ParameterError[] | undefined;
  readonly headers: Record<string, string>;
  readonly members: Readonly<Record<string, unknown>>;
  readonly isExpected: boolean;

  constructor(status: number, code: string, detail: string, options: AppErrorOptions = {}) {
    super(detail, { cause: options.cause });
    this.name = new.target.name;
    this.status = status;
    this.code = code;
    this.charged = options.charged ?? false;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.errors = options.errors;
    this.headers = options.headers ?? {};
    this.members = options.members ?? {};
    this.isExpected = options.isExpected ?? false;
  }
}

/** 400: the request cannot be served as written. `errors` names each parameter. */
export class BadParameter extends AppError {
  declare readonly errors: ParameterError[];
  constructor(errors: ParameterError[], code = 'bad_parameter') {
    super(400, code, errors.map(sentenceOf).join('; '), { errors });
  }
}

/** A fault of the whole request has no path. */
function sentenceOf({ path, message }: ParameterError): string {
  return path === '' ? message : `${path}: ${message}`;
}

/** 404: the thing that was asked for does not exist in the source that was read. */
export class NotFound extends AppError {
  constructor(detail: string, code = 'not_found') {
    super(404, code, detail);
  }
}

/** 502: a source failed. The same call may succeed later. */
export class UpstreamFailed extends AppError {
  constructor(upstream: string, detail: string, cause?: unknown) {
    super(502, 'upstream_failed', `${upstream}: ${detail}`, { cause });
  }
}

/** 503: the service cannot do this now. `charged` is `unknown` where the payment may have moved money before. */
export class Unavailable extends AppError {
  constructor(
    code: string,
    detail: string,
    retryAfterSeconds = 5,
    { charged = false, cause }: { charged?: false | 'unknown'; cause?: unknown } = {},
  ) {
    super(503, code, detail, { retryAfterSeconds, charged, cause });
  }
}

/** 429: a limit was reached that protects the service or the buyer. */
export class TooMany extends AppError {
  constructor(code: string, detail: string, retryAfterSeconds: number) {
    super(429, code, detail, { retryAfterSeconds });
  }
}

export function withMembers(error: AppError, members: Readonly<Record<string, unknown>>): AppError {
  const { status, code, message, charged, retryAfterSeconds, errors, headers, isExpected } = error;
  return new AppError(status, code, message, {
    charged,
    headers,
    isExpected,
    members,
    cause: error.cause,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(errors && { errors }),
  });
}

/** Why the service does not start: one line for its operator, who can mend it. No bug, so no stack is printed. */
export class StartRefused extends Error {}
