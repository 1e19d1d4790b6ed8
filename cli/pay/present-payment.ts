import { setTimeout as delay } from 'node:timers/promises';

/** How often the same payment is presented again. */
const MAX_RETRIES = 5;
/** The longest wait between two attempts. A longer Retry-After is cut to it. */
const MAX_WAIT_SECONDS = 10;
/** How many cut-off answers to one payment are followed by another attempt. A seller delivers an answer a few times only, so some are left for later. */
const MAX_CUT_OFF = 2;
/** In milliseconds, the body included: a settlement may take a few blocks, after a slow upstream. */
export const ANSWER_WITHIN_MS = 60_000;

/** Whether the seller is still busy with this payment, by the status of its answer. */
export const isBusy = (status: number): boolean => [409, 503].includes(status);

/** A final answer to a payment. */
export interface Presented {
  /** A refusal's body is not read yet. */
  readonly answer: Response;
  /** The complete body of a 2xx; empty for a refusal. */
  readonly body: Buffer;
  /** The headers of an earlier 2xx whose body did not arrive completely. Null when there was none. */
  readonly cutOff: Headers | null;
}

/** Each 2xx of the seller broke off, the last with these headers: the payment may be charged. */
export class CutOff extends Error {
  readonly headers: Headers;
  constructor(headers: Headers) {
    super('the answer was cut off');
    this.headers = headers;
  }
}

/**
 * Sends a signed payment and returns its final answer.
 * It presents the same payment again when the connection breaks, before or within the body of a 2xx, and while `isWorthAgain(status)` is true
 * (by default for 409 and 503: the seller is still busy with it). A seller takes one payment once; a newly signed one could be charged in addition.
 * Throws `CutOff` when an answer was cut off and no other came, and the last attempt's error when that one had no answer and none was cut off.
 */
export async function presentPayment(
  url: URL,
  headers: Record<string, string>,
  say: (line: string) => void,
  isWorthAgain: (status: number) => boolean = isBusy,
): Promise<Presented> {
  const cuts: Headers[] = [];
  for (let retry = 0; ; retry++) {
    const isLast = retry === MAX_RETRIES;
    const cutOff = cuts.at(-1) ?? null;
    const answer = await send(url, headers).catch((error: unknown) => {
      if (isLast) throw cutOff ? new CutOff(cutOff) : error;
      return null;
    });
    if (answer?.ok) {
      const body = await answer.arrayBuffer().catch(() => null);
      if (body) return { answer, body: Buffer.from(body), cutOff };
      cuts.push(answer.headers);
      if (cuts.length > MAX_CUT_OFF || isLast) throw new CutOff(answer.headers);
    } else if (answer && (!isWorthAgain(answer.status) || isLast)) return { answer, body: Buffer.alloc(0), cutOff };
    else if (answer) await dropBody(answer);
    const seconds = waitSeconds(answer?.headers.get('retry-after') ?? null);
    say(`${whatCame(answer)}; the same payment again in ${seconds} s`);
    await delay(seconds * 1000);
  }
}

function whatCame(answer: Response | null): string {
  if (!answer) return 'no answer';
  return answer.ok ? 'the answer was cut off' : `status ${answer.status}`;
}

function send(url: URL, headers: Record<string, string>): Promise<Response> {
  return fetch(url, { headers, redirect: 'manual', signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
}

/** Ends the transfer of a body that is not needed. One that broke off has ended already. */
export async function dropBody(answer: Response): Promise<void> {
  await answer.body?.cancel().catch(() => {});
}

/** Seconds to wait by a Retry-After header, from 1 to MAX_WAIT_SECONDS; 1 when it is missing or a date. */
export function waitSeconds(retryAfter: string | null): number {
  const seconds = /^\d{1,9}$/.test(retryAfter ?? '') ? Number(retryAfter) : 1;
  return Math.min(Math.max(seconds, 1), MAX_WAIT_SECONDS);
}
