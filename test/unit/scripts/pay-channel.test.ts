import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BatchSettlementEvmScheme, computeChannelId } from '@x402/evm/batch-settlement/client';
import { FileClientChannelStorage } from '@x402/evm/batch-settlement/client/file-storage';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { readChannelOffer } from '../../../scripts/lib/pay/offer.ts';
import { payByChannel } from '../../../scripts/lib/pay/pay-by-channel.ts';
import { createAccount } from '../../../src/embedded/accounts.ts';
import { startStandIn } from '../../support/upstream/http-stand-in.ts';

// What a seller that answers with a 402 of its own making can do to a buyer's channels.

const KEY = `0x${'11'.repeat(32)}` as const;
const ARC = { network: 'eip155:5042', asset: '0x3600000000000000000000000000000000000000' } as const;
const BASE = { network: 'eip155:8453', asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' } as const;
const STALE = 'invalid_batch_settlement_evm_cumulative_amount_mismatch';

interface Rpc {
  readonly id: number;
  readonly method: string;
}

interface Signed {
  readonly deposit?: { readonly authorization: { readonly erc3009Authorization: { readonly validBefore: string } } };
}

type Entry = ReturnType<typeof entryOf>;

/** An entry that is paid over a channel with the seller at this address, 0.01 USDC a call. */
function entryOf(on: typeof ARC | typeof BASE, { address }: { address: string }) {
  const extra = { name: 'USDC', version: '2', receiverAuthorizer: address, withdrawDelay: 86_400, minDeposit: '20000' };
  return { ...on, scheme: 'batch-settlement', amount: '10000', payTo: address, maxTimeoutSeconds: 600, extra };
}

/** A provider of Arc on which every channel is empty. */
const startRpc = () =>
  startStandIn(async ({ body }) => {
    const answer = ({ id, method }: Rpc) => ({
      ...{ jsonrpc: '2.0', id, result: method === 'eth_chainId' ? '0x13b2' : `0x${'0'.repeat(128)}` },
    });
    return { json: Array.isArray(body) ? body.map(answer) : answer(body as Rpc) };
  });

let rpc: Awaited<ReturnType<typeof startRpc>>;
let directory: string;
let seller: Awaited<ReturnType<typeof startStandIn>>;
let signed: Signed[];
beforeAll(async () => {
  rpc = await startRpc();
});
afterAll(() => rpc.stop());
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'percall-pay-channel-'));
  signed = [];
});
afterEach(async () => {
  await seller.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** The header of a 402 with one entry. */
const demand = (entry: Entry, more: object = {}): string =>
  btoa(JSON.stringify({ x402Version: 2, resource: { url: 'http://127.0.0.1/' }, accepts: [entry], ...more }));

/** Pays an offer to a seller that answers every payment with a 402 of this entry. Resolves with the command's error. */
async function pay(offered: Entry, answered: Entry): Promise<string> {
  seller = await startStandIn(async ({ headers }) => {
    signed.push((JSON.parse(atob(String(headers['payment-signature']))) as { payload: Signed }).payload);
    return { status: 402, json: {}, headers: { 'payment-required': demand(answered, { error: STALE }) } };
  });
  const terms = { privateKey: KEY, directory, maxDeposit: 1_000_000n, rpcUrl: rpc.url };
  const paid = payByChannel(new URL(seller.url), readChannelOffer(demand(offered))!, terms, () => {});
  return paid.then(() => 'paid', String);
}

test('a 402 that names another seller’s channel leaves the record of that channel as it was', async () => {
  const others = entryOf(BASE, createAccount());
  const storage = new FileClientChannelStorage({ directory });
  const scheme = new BatchSettlementEvmScheme(privateKeyToAccount(KEY), { storage });
  const id = computeChannelId(scheme.buildChannelConfig(others), BASE.network);
  const record = { balance: '1000000', chargedCumulativeAmount: '250000', totalClaimed: '0' };
  await storage.set(id, record as Parameters<typeof storage.set>[1]);
  expect(await pay(entryOf(ARC, createAccount()), others)).toContain(STALE);
  expect(await storage.get(id)).toMatchObject(record);
  expect(signed).toHaveLength(1);
});

test('a seller that refuses a deposit holds it still, and the buyer is told until when', async () => {
  const entry = entryOf(ARC, createAccount());
  const told = await pay(entry, entry);
  const { validBefore } = signed.at(-1)!.deposit!.authorization.erc3009Authorization;
  expect(told).toContain(`${STALE}; whether the deposit is made is open until ${validBefore} (Unix seconds)`);
});
