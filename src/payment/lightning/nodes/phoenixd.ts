import { z } from 'zod';
import { MSAT_PER_SAT } from '../../../lib/units.ts';
import type { Upstream } from '../../../upstream/client/client.ts';
import { askNode, invoiceText, nodeKeyText, type Receiver } from './receiver.ts';

// A phoenixd node over its HTTP interface: form requests, JSON answers, basic authentication with an empty user name.

const NEED = "the node's http-password-limited-access";

const created = z.object({ serialized: invoiceText });
const info = z.object({ nodeId: nodeKeyText });
const payment = z.object({ isPaid: z.boolean() });

/** The node takes whole sats only, and our prices are whole sats. */
export function createPhoenixd(upstream: Upstream, url: string, password: string): Receiver {
  const headers = { authorization: `Basic ${Buffer.from(`:${password}`).toString('base64')}` };
  const get = (path: string, signal: AbortSignal) => ({ url: `${url}${path}`, headers, signal });

  return {
    kind: 'phoenixd',
    nodeKey: async (signal) => (await askNode(upstream, get('/getinfo', signal), info, NEED)).nodeId,
    // Every read gives the same answer with either of its passwords, and we make no paying call to find out.
    inspect: async () => [`the node does not show whether the password may also spend; ${NEED} is enough`],
    createInvoice: async ({ amountMsat, requestHash, expirySeconds, label }, signal) => {
      if (amountMsat % MSAT_PER_SAT !== 0n) throw new RangeError(`${amountMsat} msat are no whole sats`);
      const form = new URLSearchParams({
        amountSat: (amountMsat / MSAT_PER_SAT).toString(),
        descriptionHash: Buffer.from(requestHash).toString('hex'),
        expirySeconds: expirySeconds.toString(),
        externalId: label,
      });
      const request = {
        url: `${url}/createinvoice`,
        method: 'POST' as const,
        headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
        body: form.toString(),
        signal,
      };
      return (await askNode(upstream, request, created, NEED)).serialized;
    },
    isPaid: async (paymentHash, signal) => {
      const path = `/payments/incoming/${Buffer.from(paymentHash).toString('hex')}`;
      return (await upstream.json(get(path, signal), payment))?.isPaid ?? false;
    },
    close: async () => undefined,
  };
}
