import { setTimeout as delay } from 'node:timers/promises';

/** How often the same payment is presented again. The next constant is the longest wait between two attempts that the seller may ask for. */
const MAX_RETRIES = 5;
const MAX_WAIT_SECONDS = 10;
/** In milliseconds: a settlement may take a few blocks, after a slow upstream. */
const ANSWER_WITHIN_MS = 60_000;

/** The seller is still busy with this payment. */
const isBusy = (status: number): boolean => [409, 503].includes(status);

/**
 * Sends a signed payment and returns the answer, with its body received whole.
 * It presents the same payment again after a broken connection, also where that cuts the body off, and while `isWorthAgain(status)` is true
 * (by default for 409 and 503: the seller is still busy with it).
 * A seller takes one payment once; a newly signed one could be charged in addition.
 */
export async function presentPayment(
  url: URL,
  headers: Record<string, string>,
  say: (line: string) => void,
  isWorthAgain: (status: number) => boolean = isBusy,
): Promise<Response> {
  for (let retry = 0; ; retry++) {
    const answer = await send(url, headers).catch((error: unknown) => {
      if (retry === MAX_RETRIES) throw error;
      return null;
    });
    if (answer && (!isWorthAgain(answer.status) || retry === MAX_RETRIES)) return answer;
    const seconds = waitSeconds(answer?.headers.get('retry-after') ?? null);
    say(`${answer ? `status ${answer.status}` : 'no answer'}; the same payment again in ${seconds} s`);
    await delay(seconds * 1000);
  }
}

async function send(url: URL, headers: Record<string, string>): Promise<Response> {
  const answer = await fetch(url, { headers, redirect: 'manual', signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
  if (!answer.body) return answer;
  return new Response(await answer.arrayBuffer(), { status: answer.status, headers: answer.headers });
}

/** Seconds to wait by a Retry-After header; 1 when it is missing or a date. */
export function waitSeconds(retryAfter: string | null): number {
  const seconds = /^\d{1,9}$/.test(retryAfter ?? '') ? Number(retryAfter) : 1;
  return Math.min(Math.max(seconds, 1), MAX_WAIT_SECONDS);
}
