import { AppError } from '../errors.ts';

/** Fastify's own errors that a client can cause, with our stable codes. Its messages are not published, because they change with versions. */
const KNOWN: Record<string, readonly [status: number, code: string, detail: string]> = {
  FST_ERR_BAD_URL: [400, 'malformed_url', 'The URL is not valid: check its percent-encoding.'],
  FST_ERR_MAX_PARAM_LENGTH: [414, 'url_too_long', 'A segment of the path is too long.'],
  FST_ERR_CTP_BODY_TOO_LARGE: [413, 'body_too_large', 'The request body may have at most 64 KiB.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [415, 'unsupported_media_type', 'Send the body as application/json.'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [400, 'invalid_content_length', 'Content-Length does not match the body.'],
  FST_ERR_CTP_EMPTY_JSON_BODY: [400, 'invalid_json', 'The body is empty; send a JSON object.'],
  FST_ERR_CTP_INVALID_JSON_BODY: [400, 'invalid_json', 'The body is not valid JSON; send a JSON object.'],
};

const INTERNAL =
  'This is a fault of the service, logged under the request id. `charged` says whether money moved; the same request may succeed later.';

/**
 * Turns any error into an AppError. An AppError stays as it is. The framework's client errors get our codes. Anything else becomes a 500 without its
 * cause, because messages of bugs may reveal internals. The log has the cause.
 */
export function asAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  const { code, statusCode } = fieldsOf(error);
  const known = KNOWN[code];
  if (known) return new AppError(...known);
  // A truncated body is an error of the connection, to which Fastify has given a status.
  if (code === 'ECONNRESET' && statusCode === 400)
    return new AppError(400, 'bad_request', 'The body ended before its announced length.');
  const fromFramework = code.startsWith('FST_') && statusCode >= 400 && statusCode < 500;
  if (fromFramework) return new AppError(statusCode, 'bad_request', 'The request cannot be read.');
  return new AppError(500, 'internal', INTERNAL, { cause: error });
}

function fieldsOf(error: unknown): { code: string; statusCode: number } {
  if (typeof error !== 'object' || error === null) return { code: '', statusCode: 0 };
  const { code, statusCode } = error as { code?: unknown; statusCode?: unknown };
  return {
    code: typeof code === 'string' ? code : '',
    statusCode: typeof statusCode === 'number' ? statusCode : 0,
  };
}
