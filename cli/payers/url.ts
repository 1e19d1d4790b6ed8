import { printable } from '../printable.ts';
import { type LightningPayer, NotPaid } from './payer.ts';

/** In milliseconds. A payment arrives within seconds, or the payer gives up. */
const TIMEOUT_MS = 90_000;

/**
 * Makes a payer of a URL, such as the demo's. POST `{ invoice }` answers `{ preimage }`, or 4xx with `{ error }` when
 * nothing was paid.
 * It pays an invoice once. A second call for the same invoice returns the same preimage.
 */
export function createUrlPayer(url: string): LightningPayer {
  const pay = async (invoice: string): Promise<unknown> => {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ invoice }),
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const { preimage, error } = (await answer.json()) as { preimage?: unknown; error?: unknown };
    if (answer.ok) return preimage;
    const reason = printable(String(error ?? `status ${answer.status}`));
    throw answer.status < 500 ? new NotPaid(reason) : new Error(reason);
  };
  return { name: 'PAYER_URL', limitsFee: false, pay, find: pay, close: () => {} };
}
