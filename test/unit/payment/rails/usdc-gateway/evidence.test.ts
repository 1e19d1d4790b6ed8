import { expect, test } from 'vitest';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import { transferIdBytes } from '../../../../../src/payment/settler.ts';
import { createGatewayEvidence, type GatewayTransfer } from '../../../../../src/payment/usdc/gateway-client.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';
import { randomAuthorization } from '../../../../support/usdc/token-node.ts';

const NETWORK = 'eip155:5042';
const NOW = 1_800_000_000;
const ID = '0b7c4b0c-1f4e-4c5e-9d53-0d1c2b3a4f5e';
const authorization = { ...randomAuthorization(), value: 1_500_000n, validBefore: BigInt(NOW + 100) };
const [from, to, nonce] = [authorization.from, authorization.to, authorization.nonce].map(bytesToHex) as [
  string,
  string,
  string,
];
const ours: GatewayTransfer = {
  id: ID,
  status: 'received',
  fromAddress: from,
  toAddress: to,
  amount: '1500000',
  nonce,
};

/** What we read out of these transfers, and what was asked for. */
async function lookup(transfers: readonly Partial<GatewayTransfer>[], nowSeconds = NOW) {
  const asked: string[][] = [];
  const search = async (...question: string[]) => {
    asked.push(question);
    return transfers.map((change) => ({ ...ours, ...change }));
  };
  const evidence = createGatewayEvidence({ search }, NETWORK, createManualClock(nowSeconds * 1000));
  const verdict = await evidence.lookup(authorization);
  const isUsed = await evidence.isUsed(authorization);
  expect(asked).toEqual(Array(2).fill([from, nonce]));
  return { verdict, isUsed };
}
const SETTLED = { kind: 'settled', transaction: transferIdBytes(ID), block: 0, paid: 1_500_000n };
const ELSEWHERE = { kind: 'failed', reason: 'invalid_exact_evm_nonce_already_used' };
const UNKNOWN = { kind: 'unknown' };

test.each<[string, Partial<GatewayTransfer>]>([
  ['as it was asked for', {}],
  ['with addresses and nonce in upper case', { fromAddress: upper(from), toAddress: upper(to), nonce: upper(nonce) }],
  ['without its nonce', { nonce: null }],
  ['with an amount in whole USDC', { amount: '1.5' }],
  ['with more places, of which the last say nothing', { amount: '1.50000000' }],
  ['from and to this network', { sendingNetwork: NETWORK, recipientNetwork: NETWORK }],
  ['between networks whose names are the Gateway’s own', { sendingNetwork: 'ARC', recipientNetwork: null }],
])('a transfer %s settles the payment', async (_, change) => {
  for (const status of ['received', 'batched', 'confirmed', 'completed'] as const)
    expect(await lookup([{ ...change, status }])).toEqual({ verdict: SETTLED, isUsed: true });
});

test.each<[string, Partial<GatewayTransfer>]>([
  ['to another recipient', { toAddress: from }],
  ['over less', { amount: '1499999' }],
  ['over more', { amount: '1500001' }],
  ['over less in whole USDC', { amount: '1.499999' }],
  ['from another network', { sendingNetwork: 'eip155:1' }],
  ['to another network', { recipientNetwork: 'eip155:1' }],
])('a transfer %s has used the authorization elsewhere', async (_, change) => {
  expect(await lookup([change])).toEqual({ verdict: ELSEWHERE, isUsed: true });
});

test.each<[string, Partial<GatewayTransfer>[]]>([
  ['of another payer', [{ fromAddress: to }]],
  ['with another nonce', [{ nonce: `0x${'00'.repeat(32)}` }]],
  ['without a readable id', [{ id: '42' }]],
  ['beside another', [{}, {}]],
  ['over an amount that cannot be read', [{ amount: '1.5 USDC' }]],
  ['over an amount with a sign', [{ amount: '+1500000' }]],
  ['over an amount past the places that USDC has', [{ amount: '1.5000001' }]],
  ['without an amount', [{ amount: '' }]],
])('a transfer %s proves nothing: the money may have moved', async (_, transfers) => {
  expect((await lookup(transfers)).verdict).toEqual(UNKNOWN);
});

test('a transfer that the Gateway gave up took nothing', async () => {
  expect((await lookup([{ status: 'failed' }])).verdict).toEqual({ kind: 'failed', reason: 'unexpected_settle_error' });
});

test('a payment without a transfer is open until a minute after it has run out', async () => {
  const end = Number(authorization.validBefore);
  expect(await lookup([], end + 59)).toEqual({ verdict: { kind: 'open' }, isUsed: false });
  expect((await lookup([], end + 60)).verdict).toEqual({
    kind: 'failed',
    reason: 'invalid_exact_evm_payload_authorization_valid_before',
  });
});

function upper(hex: string): string {
  return hex.toUpperCase().replace('0X', '0x');
}
