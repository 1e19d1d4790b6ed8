import { setTimeout as delay } from 'node:timers/promises';

/** Times the same payment is shown again before giving up, and the longest that a seller may make us wait in between. */
const MAX_RETRIES = 5;
const MAX_WAIT_SECONDS = 10;
/** A settlement may take a few blocks and a slow upstream before it. */
const ANSWER_WITHIN_MS = 60_000;

/** The seller is still busy with this payment. */
const isBusy = (status: number): boolean => [409, 503].includes(status);

/**
 * Sends a signed payment and returns the answer.
 * When the connection breaks, or the status is one after which the same payment is worth showing again (by default 409 and 503: the
 * seller is still busy with it), the same payment is shown again: a seller takes one payment once, while a freshly made one could be
 * charged on top.
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
    await answer?.body?.cancel();
    const seconds = waitSeconds(answer?.headers.get('retry-after') ?? null);
    say(`${answer ? `status ${answer.status}` : 'no answer'}; the same payment again in ${seconds} s`);
    await delay(seconds * 1000);
  }
}

function send(url: URL, headers: Record<string, string>): Promise<Response> {
  return fetch(url, { headers, redirect: 'manual', signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
}

/** Seconds to wait by a Retry-After header; 1 when it is missing or a date. */
export function waitSeconds(retryAfter: string | null): number {
  const seconds = /^\d{1,9}$/.test(retryAfter ?? '') ? Number(retryAfter) : 1;
  return Math.min(Math.max(seconds, 1), MAX_WAIT_SECONDS);
}
