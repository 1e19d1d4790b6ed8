import { z } from 'zod';
import { jsonOrNull } from '../../../lib/untrusted.ts';
import type { Upstream } from '../../../upstream/client/client.ts';
import { askNode, invoiceText, nodeKeyText, type Receiver } from './receiver.ts';

// A Core Lightning node over clnrest, whose calls are all POST with JSON.

const NEED = 'the methods invoice, listinvoices and getinfo';
/** Methods that can send money. A rune that allows one of them is wider than it should be. */
const SPENDING = ['pay', 'xpay', 'keysend', 'withdraw'] as const;
/** Core Lightning's codes for a rune that it did not make, has revoked, or that does not permit the method. */
const REFUSALS = new Set([1501, 1502, 1503]);

const created = z.object({ bolt11: invoiceText });
const info = z.object({ id: nodeKeyText });
const listed = z.object({ invoices: z.array(z.object({ status: z.string() })) });
const permitted = z.object({ valid: z.boolean() });
const refusal = z.object({ code: z.number() });

/** The node hashes the description itself, so it gets the canonical binding as text. */
export function createCln(upstream: Upstream, url: string, rune: string): Receiver {
  const call = (method: string, params: object, signal: AbortSignal) => ({
    url: `${url}/v1/${method}`,
    method: 'POST' as const,
    headers: { Rune: rune, 'content-type': 'application/json' },
    body: JSON.stringify(params),
    signal,
  });

  /** Null when the node does not say. A rune that may not even ask is restricted, so the answer is false. */
  async function mayCall(method: string, signal: AbortSignal): Promise<boolean | null> {
    const { status, body } = await upstream.fetch(call('checkrune', { rune, method }, signal));
    const answer = jsonOrNull(body);
    if (status >= 200 && status <= 299) return permitted.safeParse(answer).data?.valid ?? null;
    const code = refusal.safeParse(answer).data?.code;
    return status === 401 || status === 403 || (code !== undefined && REFUSALS.has(code)) ? false : null;
  }

  return {
    kind: 'cln',
    nodeKey: async (signal) => (await askNode(upstream, call('getinfo', {}, signal), info, NEED)).id,
    inspect: async (signal) => {
      for (const method of SPENDING) {
        const may = await mayCall(method, signal);
        if (may) return [`the rune allows ${method}; ${NEED} are enough`];
        if (may === null) return [`the node does not show what the rune allows; ${NEED} are enough`];
      }
      return [];
    },
    createInvoice: async ({ amountMsat, binding, expirySeconds, label }, signal) => {
      const order = {
        // A string with its unit, because no JSON reader rounds a string.
        amount_msat: `${amountMsat}msat`,
        label,
        description: binding,
        deschashonly: true,
        expiry: expirySeconds,
      };
      return (await askNode(upstream, call('invoice', order, signal), created, NEED)).bolt11;
    },
    isPaid: async (paymentHash, signal) => {
      const wanted = { payment_hash: Buffer.from(paymentHash).toString('hex') };
      const { invoices } = await askNode(upstream, call('listinvoices', wanted, signal), listed, NEED);
      return invoices.some(({ status }) => status === 'paid');
    },
    close: async () => undefined,
  };
}
