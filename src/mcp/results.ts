import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type { PaymentRequired, SettleResponse } from '@x402/core/types';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { faultOf, MOST_NAMED, parseParams, type Query } from '../catalogue/params.ts';
import { type AppError, BadParameter, type ParameterError } from '../errors.ts';
import { AnswerGone } from '../payment/receipt.ts';
import { RECEIPT } from './tool.ts';

// Between HTTP and MCP: what a call's arguments say (`readArguments`), and the result of an answer (`answered`), of a
// 402 (`mustPay`) and of a problem (`problem`).

/** The limit of our URLs, so that both transports take the same requests. */
const MAX_CHARS = 8192;
const TOO_LONG: ParameterError = { path: 'arguments', message: `at most ${MAX_CHARS} characters in all` };

/** By the route's own schema. Throws BadParameter, with ten faults at most. Numbers and booleans count as texts. */
export function readArguments(
  endpoint: Pick<Endpoint<never>, 'params'>,
  given: unknown,
): { query: Query; params: unknown } {
  const query = queryOf(given);
  return { query, params: parseParams(endpoint, query) };
}

function queryOf(given: unknown): Query {
  const errors: ParameterError[] = [];
  const entries: [string, string][] = [];
  let chars = 0;
  for (const [path, value] of Object.entries((given ?? {}) as object)) {
    const text = textOf(value);
    chars += path.length + (text?.length ?? 0);
    if (chars > MAX_CHARS && errors.length >= MOST_NAMED) break;
    if (text !== null) entries.push([path, text]);
    else if (errors.length < MOST_NAMED) errors.push(faultOf(path, 'must be a string, a number or a boolean'));
  }
  if (chars > MAX_CHARS) throw new BadParameter([...errors.slice(0, MOST_NAMED - 1), TOO_LONG]);
  if (errors.length > 0) throw new BadParameter(errors);
  // `fromEntries` makes own properties only, so `__proto__` is an unknown parameter like any other.
  return Object.fromEntries(entries);
}

function textOf(value: unknown): string | null {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : null;
}

/** The text is the reply's exact bytes, so that a redelivered answer can be compared. */
export function answered(body: Uint8Array, receipt?: SettleResponse): CallToolResult {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
  return {
    content: [{ type: 'text', text }],
    structuredContent: JSON.parse(text),
    ...(receipt && { _meta: { [RECEIPT]: receipt } }),
  };
}

/** PaymentRequired as data and as text. The sentence comes first, for models; x402's transport has the object there. */
export function mustPay(
  sentence: string,
  required: PaymentRequired,
  settlement?: SettleResponse | null,
): CallToolResult {
  const { content, ...rest } = failed({ ...required }, settlement ? { [RECEIPT]: settlement } : undefined);
  return { content: [{ type: 'text', text: sentence }, ...content], ...rest };
}

/** A problem's body. It has the receipt of an answer that is gone: a channel's client learns the charges from it. */
export function problem(error: AppError, requestId: string): CallToolResult {
  const { status, code, charged, errors, members, retryAfterSeconds } = error;
  // `errors` names each fault already. There may be more: names are checked until ten are faulty.
  const isList = errors !== undefined && errors.length > 1;
  const detail = isList ? `at least ${errors.length} faults in the arguments: see errors` : error.message;
  const receipt = error instanceof AnswerGone ? error.receipt : null;
  return failed(
    {
      ...members,
      code,
      detail,
      charged,
      status,
      requestId,
      ...(errors && { errors }),
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds: Math.max(1, Math.ceil(retryAfterSeconds)) }),
    },
    receipt ? { [RECEIPT]: receipt } : undefined,
  );
}

function failed(structuredContent: Record<string, unknown>, meta?: Record<string, unknown>): CallToolResult {
  const content = [{ type: 'text' as const, text: JSON.stringify(structuredContent) }];
  return { isError: true, content, structuredContent, ...(meta && { _meta: meta }) };
}
