import { Agent, request } from 'undici';
import { createAccount, type EmbeddedNetwork } from '../../dev/network.ts';
import { addressOf } from '../../src/lib/secp256k1.ts';
import { AUTHORIZATION_USED } from '../../src/payment/usdc/token.ts';
import { percentile } from './lib.ts';
import { type Challenge, signPayment } from './payments.ts';

export const SECONDS = 12;
/** One buyer is measured for longer, because it makes few calls, and receipt polling spreads them in steps of 200 ms. */
const SECONDS_ALONE = 30;
/** More payments than one buyer can use in a round. Each of its calls waits for a half-second block. */
const paymentsOf = (buyers: number): number => (buyers > 64 ? 30 : 60);

/** The seller under test, at one address or at several that share its load. */
export interface Seller {
  readonly name: string;
  readonly urls: readonly string[];
  /** The account that pays the gas. */
  readonly relayer: string;
  challenge: Challenge;
}
/** The result of one round. Times in milliseconds. */
export interface Measure {
  perSecond: number;
  mean: number;
  p50: number;
  p99: number;
  /** Gas of the relayer's transactions divided by the payments that they settled. */
  gas: number;
}

/** Runs one round. Each buyer sends its next call as soon as the last one was answered. Payments are signed before the round starts. */
export async function measurePaid(network: EmbeddedNetwork, seller: Seller, buyers: number): Promise<Measure> {
  const agent = new Agent({ connections: buyers, pipelining: 1, headersTimeout: 120_000 });
  const latencies: number[] = [];
  const wallets = await Promise.all(
    Array.from({ length: buyers }, async () => {
      const key = Buffer.from(createAccount().privateKey.slice(2), 'hex');
      const each = paymentsOf(buyers);
      await network.fundUsdc(addressOf(key), BigInt(seller.challenge.amount) * BigInt(each));
      return Array.from({ length: each }, () => signPayment(key, seller.challenge));
    }),
  );
  const firstBlock = Number(await network.rpc<string>('eth_blockNumber', []));
  const from = performance.now();
  const until = from + (buyers === 1 ? SECONDS_ALONE : SECONDS) * 1000;
  await Promise.all(
    wallets.map(async (payments, buyer) => {
      const url = seller.urls[buyer % seller.urls.length] as string;
      for (const payment of payments) {
        // Spreads the calls over the block time, so that they are not in step with the call before.
        await new Promise((wait) => setTimeout(wait, Math.random() * (buyers === 1 ? 500 : 20)));
        if (performance.now() > until) return;
        const sent = performance.now();
        const answer = await request(url, { dispatcher: agent, headers: { 'payment-signature': payment } });
        await answer.body.text();
        if (answer.statusCode !== 200) throw new Error(`${seller.name} answered ${answer.statusCode}`);
        latencies.push(performance.now() - sent);
      }
    }),
  );
  const seconds = (performance.now() - from) / 1000;
  await agent.close();
  const gas = await gasPerPayment(network, seller.relayer, firstBlock + 1);
  const mean = latencies.reduce((sum, latency) => sum + latency, 0) / latencies.length;
  return {
    perSecond: latencies.length / seconds,
    mean,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    gas,
  };
}

/** The gas that settling has used since a block, from the chain's receipts. */
async function gasPerPayment(network: EmbeddedNetwork, relayer: string, firstBlock: number): Promise<number> {
  const last = Number(await network.rpc<string>('eth_blockNumber', []));
  let gas = 0;
  let payments = 0;
  for (let block = firstBlock; block <= last; block++) {
    type Mined = { from: string; gasUsed: string; logs: { topics: string[] }[] };
    for (const receipt of await network.rpc<Mined[]>('eth_getBlockReceipts', [`0x${block.toString(16)}`])) {
      if (receipt.from.toLowerCase() !== relayer) continue;
      gas += Number(receipt.gasUsed);
      payments += receipt.logs.filter(({ topics }) => topics[0] === AUTHORIZATION_USED).length;
    }
  }
  return gas / payments;
}
