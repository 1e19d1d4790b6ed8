import { expect, onTestFinished, test } from 'vitest';
import { startLndRest } from '../../../dev/lightning/lnd-rest.ts';
import type { Received } from '../../../dev/lightning/node.ts';

const HASH = 'ab'.repeat(32);
const PREIMAGE = Buffer.alloc(32, 7);

/** A node with one open invoice, its payments, and how it answers a look-up of that invoice. */
async function openNode() {
  const received = new Map<string, Received>();
  const node = {
    nodeId: '02'.repeat(33),
    network: 'mainnet',
    createInvoice: () => 'lnbc1',
    hashOf: () => HASH,
  } as const;
  const face = await startLndRest({ ...node, received });
  onTestFinished(face.stop);
  const ask = async (path: string, init: RequestInit = {}) => {
    const answer = await fetch(face.url + path, { ...init, headers: { 'Grpc-Metadata-macaroon': face.macaroon } });
    return (await answer.json()) as object;
  };
  const order = { value_msat: '1000', description_hash: Buffer.alloc(32).toString('base64') };
  await ask('/v1/invoices', { method: 'POST', body: JSON.stringify(order) });
  return { received, lookUp: () => ask(`/v1/invoice/${HASH}`) };
}

test('an open invoice shows no preimage, and a settled one shows it in base64', async () => {
  const { received, lookUp } = await openNode();
  expect(await lookUp()).toEqual({ payment_request: 'lnbc1', settled: false, state: 'OPEN', amt_paid_msat: '0' });
  received.set(HASH, { amountMsat: 1000n, preimage: PREIMAGE });
  expect(await lookUp()).toEqual({
    payment_request: 'lnbc1',
    settled: true,
    state: 'SETTLED',
    amt_paid_msat: '1000',
    r_preimage: PREIMAGE.toString('base64'),
  });
});

test('a settled invoice without a known preimage shows none', async () => {
  const { received, lookUp } = await openNode();
  received.set(HASH, { amountMsat: 1000n, preimage: null });
  expect(await lookUp()).toEqual({ payment_request: 'lnbc1', settled: true, state: 'SETTLED', amt_paid_msat: '1000' });
});
