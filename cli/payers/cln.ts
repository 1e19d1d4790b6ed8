import { z } from 'zod';
import { jsonOrUndefined } from '../../src/lib/untrusted.ts';
import { printable } from '../printable.ts';
import { type LightningPayer, NotPaid } from './payer.ts';

/** How long the node may look for a route. The next constant is how long we wait for its answer. */
const ATTEMPT_SECONDS = 60;
const TIMEOUT_MS = 90_000;

const paid = z.object({ status: z.literal('complete'), payment_preimage: z.string() });
const listed = z.object({
  pays: z.array(z.object({ status: z.enum(['pending', 'complete', 'failed']), preimage: z.string().optional() })),
});
const failure = z.object({ code: z.number(), message: z.string() });

/**
 * Codes of `pay` after which no part of the payment is under way: refused by the recipient, no route, too dear,
 * expired,
 * ended without one in progress. And those of a rune that does not permit the method.
 */
const NOTHING_PAID = new Set([203, 205, 206, 207, 210, 1501, 1502, 1503]);

/** Makes a payer of a Core Lightning node over clnrest. The rune must allow `pay` and `listpays`. */
export function createClnPayer({ url, rune }: { readonly url: string; readonly rune: string }): LightningPayer {
  const base = url.replace(/\/+$/, '');

  async function ask(method: string, params: object): Promise<{ status: number; body: unknown }> {
    const answer = await fetch(`${base}/v1/${method}`, {
      method: 'POST',
      headers: { Rune: rune, 'content-type': 'application/json' },
      body: JSON.stringify(params),
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return { status: answer.status, body: jsonOrUndefined(await answer.text()) };
  }

  return {
    name: 'CLN_PAYER_URL',
    limitsFee: true,
    async pay(invoice, { feeLimitMsat }) {
      const order = { bolt11: invoice, maxfee: `${feeLimitMsat}msat`, retry_for: ATTEMPT_SECONDS };
      const { status, body } = await ask('pay', order);
      const done = paid.safeParse(body);
      if (done.success && status >= 200 && status <= 299) return done.data.payment_preimage;
      const refusal = failure.safeParse(body);
      if (!refusal.success) throw new Error(`no final answer (status ${status})`);
      const { code, message } = refusal.data;
      throw NOTHING_PAID.has(code) ? new NotPaid(printable(message)) : new Error(printable(message));
    },
    async find(_invoice, paymentHash) {
      const { status, body } = await ask('listpays', { payment_hash: paymentHash });
      const read = listed.safeParse(body);
      if (!read.success || status > 299)
        throw new Error(printable(failure.safeParse(body).data?.message ?? `no final answer (status ${status})`));
      const complete = read.data.pays.find((one) => one.status === 'complete');
      if (complete) return complete.preimage;
      if (read.data.pays.some((one) => one.status === 'pending')) throw new Error('the payment is under way');
      return null;
    },
    close: () => {},
  };
}
