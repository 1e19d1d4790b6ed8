import { Agent, request } from 'undici';
import { addressOf } from '../../src/lib/secp256k1.ts';
import { AUTHORIZATION_USED } from '../../src/payment/usdc/token.ts';
import { createAccount } from '../embedded/accounts.ts';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../embedded/network.ts';
import { embeddedEnvironment } from '../embedded/serve.ts';
import { median, percentile, startSubject } from './lib.ts';
import { type Challenge, readChallenge, signPayment } from './payments.ts';

const SECONDS = 12;
/** One buyer makes few calls, and receipt polling spreads them in steps of 200 ms: it is measured for longer. */
const SECONDS_ALONE = 30;
/** Each with its number of interleaved rounds: with many buyers one round has thousands of samples. */
const BUYERS: readonly (readonly [buyers: number, rounds: number])[] = [
  [1, 3],
  [16, 3],
  [64, 3],
  [256, 2],
  [512, 2],
];
/** More than a buyer can spend in one round: it closes its loop through blocks of half a second. */
const paymentsOf = (buyers: number): number => (buyers > 64 ? 30 : 60);

interface Seller {
  readonly name: string;
  readonly url: string;
  /** Who pays the gas. */
  readonly relayer: string;
  challenge: Challenge;
}
interface Measure {
  perSecond: number;
  mean: number;
  p50: number;
  p99: number;
  /** Gas of the relayer's transactions for each payment that they settled. */
  gas: number;
}

/** Paid calls end to end with pre-signed payments: ours beside the SDK's Express middleware, on one chain, in one run. */
export async function benchPaid(): Promise<void> {
  const network = await startEmbeddedNetwork();
  const rival = createAccount();
  await network.fundNative(rival.address, 10n ** 21n);
  const chain = { RPC_URL: network.rpcUrl, RELAYER_KEY: rival.privateKey, SELLER: network.seller, USDC: network.usdc };
  const express = await startSubject('scripts/bench/servers/express.ts', 4111, '/', chain);
  const env = {
    PUBLIC_ORIGIN: 'http://127.0.0.1:4112',
    LOG_LEVEL: 'warn',
    PAYER_MAX_OPEN: '0',
    WS_URLS: network.wsUrl,
  };
  const percall = await startSubject('src/server.ts', 4112, '/readyz', { ...embeddedEnvironment(network), ...env });
  const sellers: Seller[] = [];
  for (const [name, url, relayer] of [
    ['@x402/express', `${express.origin}/paid`, rival.address],
    ['percall', `${percall.origin}/v1/paid/fees/estimate`, network.relayer.address],
  ] as const) {
    sellers.push({ name, url, relayer: relayer.toLowerCase(), challenge: await readChallenge(url) });
  }
  try {
    console.log(
      `paid calls, closed loop, medians of interleaved rounds of ${SECONDS} s, half-second blocks of 30M gas`,
    );
    console.log('buyers  seller          calls/s  mean ms   p50 ms   p99 ms  gas each');
    for (const [buyers, rounds] of BUYERS) {
      const results = new Map<string, Measure[]>();
      for (let round = 0; round < rounds; round++) {
        for (const seller of sellers) {
          const measure = await measureOnce(network, seller, buyers);
          results.set(seller.name, [...(results.get(seller.name) ?? []), measure]);
        }
      }
      for (const [name, measures] of results) {
        const of = (key: keyof Measure) => median(measures.map((measure) => measure[key]));
        const row = [
          of('perSecond').toFixed(1).padStart(8),
          of('mean').toFixed(0).padStart(8),
          of('p50').toFixed(0).padStart(8),
          of('p99').toFixed(0).padStart(8),
          of('gas').toFixed(0).padStart(9),
        ];
        console.log(`${String(buyers).padStart(6)}  ${name.padEnd(14)}${row.join(' ')}`);
      }
    }
  } finally {
    await Promise.all([express.stop(), percall.stop()]);
    await network.stop();
  }
}

async function measureOnce(network: EmbeddedNetwork, seller: Seller, buyers: number): Promise<Measure> {
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
    wallets.map(async (payments) => {
      for (const payment of payments) {
        // Calls come at any moment of a block, not in step with the one before.
        await new Promise((wait) => setTimeout(wait, Math.random() * (buyers === 1 ? 500 : 20)));
        if (performance.now() > until) return;
        const sent = performance.now();
        const answer = await request(seller.url, { dispatcher: agent, headers: { 'payment-signature': payment } });
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

/** What settling has cost since a block, by the chain's own receipts. */
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
