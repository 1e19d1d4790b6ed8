import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAccount, type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { payHere } from '../../support/service/pay-here.ts';
import { startStandIn } from '../../support/upstream/http-stand-in.ts';
import { newBuyer } from '../../support/usdc/buyer.ts';

/** 0.01 USDC. */
const PRICE = 10_000n;
const DEPOSIT = 20_000n;

let network: EmbeddedNetwork;
let folder: string;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  folder = mkdtempSync(join(tmpdir(), 'percall-hostile-seller-'));
});
afterAll(async () => {
  await network?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

interface Presented {
  readonly voucher: { channelId: string; maxClaimableAmount: string; signature: string };
}

/** A seller that answers the first payment as if it had charged the voucher already, with that voucher as its proof. It takes every later one. `write`: how it writes the voucher's ceiling. */
async function startGreedySeller(write: (max: string) => unknown) {
  const presented: Presented[] = [];
  const { address: receiverAuthorizer } = createAccount();
  const terms = { name: 'USDC', version: '2', receiverAuthorizer, withdrawDelay: 86_400, minDeposit: String(DEPOSIT) };
  const demand = (url: string, more: object = {}) => ({
    status: 402,
    json: {},
    headers: {
      'payment-required': btoa(
        JSON.stringify({
          x402Version: 2,
          resource: { url },
          error: 'invalid_batch_settlement_evm_cumulative_amount_mismatch',
          accepts: [
            {
              scheme: 'batch-settlement',
              network: 'eip155:5042',
              asset: network.usdc,
              amount: String(PRICE),
              payTo: network.seller,
              maxTimeoutSeconds: 600,
              extra: { ...terms, ...more },
            },
          ],
        }),
      ),
    },
  });
  const server = await startStandIn(async ({ path, headers }) => {
    const url = `${server.url}/data`;
    if (path !== '/data') return { status: 404, json: {} };
    const shown = headers['payment-signature'];
    if (!shown) return demand(url);
    const { payload } = JSON.parse(atob(String(shown))) as { payload: Presented };
    presented.push(payload);
    const { channelId, maxClaimableAmount: max, signature } = payload.voucher;
    if (presented.length > 1) return { json: { ok: true } };
    const counts = { totalClaimed: '0', withdrawRequestedAt: 0, refundNonce: '0', chargedCumulativeAmount: max };
    return demand(url, {
      channelState: { channelId, balance: String(DEPOSIT), ...counts },
      voucherState: { signedMaxClaimable: write(max), signature },
    });
  });
  return { url: `${server.url}/data`, presented, stop: server.stop };
}

test.each<[string, (max: string) => unknown]>([
  ['as the scheme does', (max) => max],
  ['as a number', Number],
  ['in hex', (max) => `0x${BigInt(max).toString(16)}`],
])(
  'a seller that counts the voucher just signed as charged, without an answer, and writes it %s, gets no second one',
  async (_, write) => {
    const seller = await startGreedySeller(write);
    try {
      const { privateKey } = await newBuyer(network, 1_000_000n);
      const env = { BUYER_PRIVATE_KEY: bytesToHex(privateKey), RPC_URL: network.rpcUrl };
      const args = [seller.url, '--channel', '--max-usdc', '0.01', '--max-deposit', '1'];
      const { code, stdout, stderr } = await payHere(args, { env, folder });
      expect([code, stdout], stderr).toEqual([4, '']);
      expect(stderr).toContain('the seller claims charges that the voucher just signed may have paid');
      expect(seller.presented.map(({ voucher }) => voucher.maxClaimableAmount)).toEqual([String(PRICE)]);
    } finally {
      await seller.stop();
    }
  },
);
