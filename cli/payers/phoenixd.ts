import { z } from 'zod';
import { jsonOrUndefined } from '../../src/lib/untrusted.ts';
import { printable } from '../printable.ts';
import { type LightningPayer, NotPaid } from './payer.ts';

/** In milliseconds. A payment arrives within seconds, or the node gives up. */
const TIMEOUT_MS = 90_000;

const paid = z.object({ paymentPreimage: z.string() });
const failed = z.object({ reason: z.string() });
const outgoing = z.object({ isPaid: z.boolean(), preimage: z.string().nullish() });

/** Makes a payer of a phoenixd node. Its fee is fixed by the node, so it takes no limit. */
export function createPhoenixdPayer(at: { readonly url: string; readonly password: string }): LightningPayer {
  const base = at.url.replace(/\/+$/, '');
  const authorization = `Basic ${Buffer.from(`:${at.password}`).toString('base64')}`;

  async function ask(path: string, form?: Record<string, string>): Promise<{ status: number; body: unknown }> {
    const answer = await fetch(`${base}${path}`, {
      method: form ? 'POST' : 'GET',
      headers: { authorization },
      body: form ? new URLSearchParams(form) : null,
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    return { status: answer.status, body: jsonOrUndefined(await answer.text()) };
  }

  return {
    name: 'PHOENIXD_PAYER_URL',
    limitsFee: false,
    async pay(invoice) {
      const { status, body } = await ask('/payinvoice', { invoice });
      const done = paid.safeParse(body);
      if (done.success && status === 200) return done.data.paymentPreimage;
      // The node answers 200 with a reason once the payment has failed for good, and these before it has tried.
      const reason = failed.safeParse(body);
      if (reason.success && status === 200) throw new NotPaid(printable(reason.data.reason));
      if ([400, 401, 403].includes(status)) throw new NotPaid(`the node refuses (status ${status})`);
      throw new Error(`no final answer (status ${status})`);
    },
    async find(_invoice, paymentHash) {
      const { status, body } = await ask(`/payments/outgoingbyhash/${paymentHash}`);
      const read = outgoing.safeParse(body);
      if (status === 200 && read.success && read.data.isPaid && read.data.preimage) return read.data.preimage;
      // An unpaid one may be under way, and the node does not say that it knows none by its body.
      throw new Error(status === 200 ? 'the payment is not complete' : `no final answer (status ${status})`);
    },
    close: () => {},
  };
}
