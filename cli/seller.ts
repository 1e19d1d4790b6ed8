import {
  decodePaymentResponseHeader,
  decodePaymentSignatureHeader,
  encodePaymentRequiredHeader,
} from '@x402/core/http';
import type { PaymentRequired, SettleResponse } from '@x402/core/types';
import { isObject, jsonOrUndefined } from '../src/lib/untrusted.ts';
import { WOULD_BE_REFUSED } from '../src/payment/protocol.ts';
import { boundUrl, challengeErrorOf } from './challenges.ts';
import type { Call, HttpCall, ToolCall } from './port.ts';
import { printable } from './printable.ts';

// A call as its seller sees it: it is asked without a payment, and presented with one, over HTTP or as a tool.
// 1. `sellerOf` makes one exchange of a call. A tool's answers are told in HTTP's words, so the ways to pay know no
// tools.
// 2. `present` sends the same payment until its answer is final.
// 3. The last part reads what a final answer says of the money. All of it is untrusted.

/** A complete answer. */
export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
}

/** One call at one seller. */
export interface Seller {
  /** The host, with its port. */
  readonly host: string;
  /** What is bound and compared: `GET https://…`, or a tool with its arguments. */
  readonly name: string;
  /**
   * Sends the call, with a payment's headers where it is presented. Rejects when there is no answer, and with `CutOff`
   * when the body of a 2xx did not arrive completely.
   */
  send(payment?: Readonly<Record<string, string>>): Promise<Reply>;
}

/** In milliseconds, the body included: a settlement may take a few blocks, after a slow upstream. */
export const ANSWER_WITHIN_MS = 60_000;
/** The most of one answer that is read. A larger one counts as broken off. */
const MAX_BYTES = 64 * 1024 * 1024;

/** A 2xx broke off, or each of several did, the last with these headers: the payment may be charged. */
export class CutOff extends Error {
  readonly headers: Headers;
  constructor(headers: Headers) {
    super('the answer was cut off');
    this.headers = headers;
  }
}

/** A URL's host and port as budgets and pins know them: `api.example.` is `api.example`. */
export const hostOf = ({ host }: URL): string => host.replace(/\.(?=:\d+$|$)/, '');

export function sellerOf(call: Call): Seller {
  return call.kind === 'http' ? httpSeller(call) : toolSeller(call);
}

function httpSeller({ method, url, body }: HttpCall): Seller {
  return {
    host: hostOf(url),
    name: `${method} ${boundUrl(url)}`,
    async send(payment = {}) {
      // Redirects are not followed: the payment would be made out to a third party, or be given to one.
      const answer = await fetch(url, {
        method,
        headers: { ...(body && { 'content-type': body.contentType }), ...payment },
        body: body && new Uint8Array(body.bytes),
        redirect: 'manual',
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      });
      const { status, headers } = answer;
      const bytes = await readBody(answer).catch(() => null);
      if (bytes === null && answer.ok) throw new CutOff(headers);
      // A refusal counts by its headers too.
      return { status, headers, body: bytes ?? Buffer.alloc(0) };
    },
  };
}

async function readBody(answer: Response): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BYTES) throw new Error('the answer is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** x402's members of a tool call. */
const PAYMENT = 'x402/payment';
const RECEIPT = 'x402/payment-response';

/** A tool's result as HTTP has it: a demand is a 402, a problem has its own status, anything else is a 200. */
function toolSeller({ server, name, arguments: given }: ToolCall): Seller {
  return {
    host: hostOf(server),
    name: `tools/call ${boundUrl(server)} ${name} ${JSON.stringify(given)}`,
    async send(payment = {}) {
      const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
      const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
      const client = new Client({ name: 'percall', version: '1' });
      const header = payment['PAYMENT-SIGNATURE'];
      const _meta = header === undefined ? undefined : { [PAYMENT]: decodePaymentSignatureHeader(header) };
      const transport = new StreamableHTTPClientTransport(
        new URL(server),
        boundTo({ bytes: MAX_BYTES, withinMs: ANSWER_WITHIN_MS }),
      );
      try {
        // The SDK's own types contradict each other under exactOptionalPropertyTypes.
        await client.connect(transport as never, { timeout: ANSWER_WITHIN_MS });
        const asked = { name, arguments: { ...given }, ...(_meta && { _meta }) };
        return replyOfTool(await client.callTool(asked, undefined, { timeout: ANSWER_WITHIN_MS }));
      } finally {
        await client.close().catch(() => {});
      }
    },
  };
}

/**
 * Lets a tool server send so many bytes an answer, take so long for it, and lead nowhere else. The SDK alone would read
 * any number, and bounds the time of requests only: a notification waits for its answer too.
 */
export function boundTo({ bytes: most, withinMs }: { readonly bytes: number; readonly withinMs: number }) {
  const bounded = async (url: string | URL, init?: RequestInit): Promise<Response> => {
    const late = AbortSignal.timeout(withinMs);
    const signal = init?.signal ? AbortSignal.any([init.signal, late]) : late;
    const answer = await fetch(url, { ...init, signal, redirect: 'error' });
    let bytes = 0;
    const counting = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, out) {
        bytes += chunk.byteLength;
        if (bytes > most) out.error(new Error('the answer is too long'));
        else out.enqueue(chunk);
      },
    });
    const { status, headers } = answer;
    return new Response(answer.body?.pipeThrough(counting) ?? null, { status, headers });
  };
  return { fetch: bounded };
}

/** The longest text of a failed tool that counts as its reason. */
const MAX_SAID = 2000;

/** What a result says as an object. Servers without structured content have it as JSON in the first text, or a text. */
function saidIn({ structuredContent, content }: Record<string, unknown>): Record<string, unknown> {
  if (isObject(structuredContent)) return structuredContent;
  const [first] = Array.isArray(content) ? content : [];
  if (!isObject(first) || typeof first.text !== 'string') return {};
  const read = jsonOrUndefined(first.text);
  return isObject(read) ? read : { detail: first.text.slice(0, MAX_SAID) };
}

function replyOfTool(result: Record<string, unknown>): Reply {
  const headers = new Headers({ 'content-type': 'application/json' });
  const meta = isObject(result._meta) ? result._meta : {};
  if (isObject(meta[RECEIPT])) headers.set('payment-response', base64(meta[RECEIPT]));
  const said = result.isError === true ? saidIn(result) : {};
  const problem = Buffer.from(JSON.stringify(said));
  if (result.isError !== true) return { status: 200, headers, body: Buffer.from(JSON.stringify(result)) };
  if (Array.isArray(said.accepts)) {
    headers.set('payment-required', encodePaymentRequiredHeader(said as unknown as PaymentRequired));
    return { status: 402, headers, body: problem };
  }
  const status = typeof said.status === 'number' && said.status >= 400 && said.status <= 599 ? said.status : 500;
  return { status, headers, body: problem };
}

const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64');

/** How often the same payment is presented again. */
const MAX_RETRIES = 5;
/** The longest wait between two attempts. A longer Retry-After is cut to it. */
const MAX_WAIT_SECONDS = 10;
/**
 * How many cut-off answers to one payment are followed by another attempt. A seller delivers an answer a few times
 * only,
 * so some are left for later.
 */
const MAX_CUT_OFF = 2;

/** Whether the seller is still busy with this payment, by the status of its answer. */
export const isBusy = (status: number): boolean => [409, 503].includes(status);

/** A final answer to a payment. */
export interface Presented {
  readonly reply: Reply;
  /** The headers of an earlier 2xx whose body did not arrive completely. Null when there was none. */
  readonly cutOff: Headers | null;
}

/** What a presentation needs besides the seller and the payment. */
export interface Presenting {
  readonly say: (line: string) => void;
  readonly delay: (ms: number) => Promise<void>;
  /** Whether an answer of this status is worth another attempt. Default: 409 and 503, the seller is still busy. */
  readonly isWorthAgain?: (status: number) => boolean;
}

/**
 * Sends a payment and returns its final answer. It presents the same payment again when the connection breaks, before
 * or
 * within the body of a 2xx, and while the status is worth it. A seller takes one payment once; a newly signed one could
 * be
 * charged in addition. Throws `CutOff` when an answer was cut off and no other came, and the last attempt's error when
 * that
 * one had no answer and none was cut off.
 */
export async function present(
  seller: Seller,
  payment: Readonly<Record<string, string>>,
  { say, delay, isWorthAgain = isBusy }: Presenting,
): Promise<Presented> {
  const cuts: Headers[] = [];
  for (let retry = 0; ; retry++) {
    const isLast = retry === MAX_RETRIES;
    const reply = await seller.send(payment).catch((error: unknown) => {
      if (error instanceof CutOff) cuts.push(error.headers);
      const cut = cuts.at(-1);
      if (isLast || cuts.length > MAX_CUT_OFF) throw cut ? new CutOff(cut) : error;
      return error instanceof CutOff ? ('cut off' as const) : null;
    });
    const isFinal =
      reply !== null && reply !== 'cut off' && (isLast || reply.status < 300 || !isWorthAgain(reply.status));
    if (isFinal) return { reply, cutOff: cuts.at(-1) ?? null };
    const came = reply === 'cut off' ? 'the answer was cut off' : reply ? `status ${reply.status}` : 'no answer';
    const after = reply === null || reply === 'cut off' ? null : reply.headers.get('retry-after');
    const seconds = waitSeconds(after);
    say(`${came}; the same payment again in ${seconds} s`);
    await delay(seconds * 1000);
  }
}

/** Seconds to wait by a Retry-After header, from 1 to MAX_WAIT_SECONDS; 1 when it is missing or a date. */
export function waitSeconds(retryAfter: string | null): number {
  const seconds = /^\d{1,9}$/.test(retryAfter ?? '') ? Number(retryAfter) : 1;
  return Math.min(Math.max(seconds, 1), MAX_WAIT_SECONDS);
}

export const isAnswer = ({ status }: Reply): boolean => status >= 200 && status <= 299;

/** The receipt in PAYMENT-RESPONSE. Null without one that can be read. */
export function settledIn(headers: Headers): SettleResponse | null {
  try {
    return decodePaymentResponseHeader(headers.get('payment-response') ?? '');
  } catch {
    return null;
  }
}

/** Whether a receipt says that a payment was taken, and names its transaction. Its JSON may have anything there. */
export const namesTransaction = (receipt: SettleResponse | null): receipt is SettleResponse =>
  receipt?.success === true && typeof receipt.transaction === 'string' && receipt.transaction !== '';

/** The transaction that the receipt of an answer names; null without one. */
export function transactionIn(headers: Headers): string | null {
  const receipt = settledIn(headers);
  return namesTransaction(receipt) ? receipt.transaction : null;
}

/** Why a presented payment got no answer: the receipt's reason, else the challenge's, else the body's. Cleaned. */
export function reasonOf({ headers, body }: Reply, receipt = settledIn(headers)): string {
  const reason = receipt?.errorReason ?? challengeErrorOf(headers);
  return printable(reason ?? problemDetail(body.toString('utf8')) ?? 'no reason given');
}

/**
 * Whether the seller says that this request took nothing: a 402, or a problem with `charged: false`. It is the seller's
 * word alone. Any other failure leaves it open.
 */
export function saysUncharged({ status, body, headers }: Reply): boolean {
  if (settledIn(headers)?.success === true) return false;
  const said = body.length > MAX_PROBLEM ? undefined : jsonOrUndefined(body.toString('utf8'));
  const charged = isObject(said) ? said.charged : undefined;
  return status === 402 ? charged !== true && charged !== 'unknown' : charged === false;
}

/** The longest body that is parsed, in characters. */
const MAX_PROBLEM = 4096;

/** The values of `charged` as words. */
const SAID = new Map<unknown, string>([
  [false, 'not charged'],
  [true, 'charged'],
  ['unknown', 'unknown whether it is charged'],
]);

/** A failed answer's reason: RFC 9457's `detail`, with what the seller says in `charged`. Null for anything else. */
export function problemDetail(body: string): string | null {
  const problem = body.length > MAX_PROBLEM ? undefined : jsonOrUndefined(body);
  if (!isObject(problem) || typeof problem.detail !== 'string') return null;
  const said = SAID.get(problem.charged);
  return said === undefined ? problem.detail : `${problem.detail} (the seller says: ${said})`;
}

/** The hint of a 402 which says that the paid request would be a 400, as percall's do. Null for any other body. */
export function foreseenRefusal(body: string): string | null {
  const said = body.length > MAX_PROBLEM ? undefined : jsonOrUndefined(body);
  if (!isObject(said)) return null;
  const texts = [said.hint, said.detail].filter((text) => typeof text === 'string');
  return texts.find((text) => text.includes(WOULD_BE_REFUSED)) ?? null;
}
