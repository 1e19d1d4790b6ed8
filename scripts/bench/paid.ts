import { Agent, request } from 'undici';
import { addressOf } from '../../src/lib/secp256k1.ts';
import { createAccount } from '../embedded/accounts.ts';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../embedded/network.ts';
import { embeddedEnvironment } from '../embedded/serve.ts';
import { median, percentile, startSubject } from './lib.ts';
import { type Challenge, readChallenge, signPayment } from './payments.ts';

const SECONDS = 12;
/** One buyer makes few calls, and receipt polling spreads them in steps of 200 ms: it is measured for longer. */
const SECONDS_ALONE = 30;
const BUYERS = [1, 16, 64];
const ROUNDS = 3;
/** More than a buyer can spend in one round: it closes its loop through blocks of half a second. */
const PAYMENTS_PER_BUYER = 60;

interface Seller {
  readonly name: string;
  readonly url: string;
  challenge: Challenge;
}
interface Measure {
  perSecond: number;
  mean: number;
  p50: number;
  p99: number;
}

/** Paid calls end to end with pre-signed payments: ours beside the SDK's Express middleware, on one chain, in one run. */
export async function benchPaid(): Promise<void> {
  const network = await startEmbeddedNetwork();
  const rival = createAccount();
  await network.fundNative(rival.address, 10n ** 21n);
  const chain = { RPC_URL: network.rpcUrl, RELAYER_KEY: rival.privateKey, SELLER: network.seller, USDC: network.usdc };
  const express = await startSubject('scripts/bench/servers/express.ts', 4111, '/', chain);
  const env = { PUBLIC_ORIGIN: 'http://127.0.0.1:4112', LOG_LEVEL: 'warn', PAYER_MAX_OPEN: '0' };
  const percall = await startSubject('src/server.ts', 4112, '/readyz', { ...embeddedEnvironment(network), ...env });
  const sellers: Seller[] = [];
  for (const [name, url] of [
    ['@x402/express', `${express.origin}/paid`],
    ['percall', `${percall.origin}/v1/paid/fees/estimate`],
  ] as const) {
    sellers.push({ name, url, challenge: await readChallenge(url) });
  }
  try {
    console.log(`paid calls, closed loop, median of ${ROUNDS} interleaved rounds of ${SECONDS} s, half-second blocks`);
    console.log('buyers  seller          calls/s  mean ms   p50 ms   p99 ms');
    for (const buyers of BUYERS) {
      const results = new Map<string, Measure[]>();
      for (let round = 0; round < ROUNDS; round++) {
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
  const agent = new Agent({ connections: buyers, pipelining: 1 });
  const latencies: number[] = [];
  const wallets = await Promise.all(
    Array.from({ length: buyers }, async () => {
      const key = Buffer.from(createAccount().privateKey.slice(2), 'hex');
      await network.fundUsdc(addressOf(key), BigInt(seller.challenge.amount) * BigInt(PAYMENTS_PER_BUYER));
      return Array.from({ length: PAYMENTS_PER_BUYER }, () => signPayment(key, seller.challenge));
    }),
  );
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
  const mean = latencies.reduce((sum, latency) => sum + latency, 0) / latencies.length;
  return {
    perSecond: latencies.length / seconds,
    mean,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
  };
}
