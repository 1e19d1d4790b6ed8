import { createAccount, startEmbeddedNetwork } from '../../dev/network.ts';
import { embeddedEnvironment } from '../../dev/serve.ts';
import { median, startService, startSubject, Usage } from './lib.ts';
import { benchPaidBefore } from './paid-before.ts';
import { type Measure, measurePaid, SECONDS, type Seller } from './paid-load.ts';
import { readChallenge } from './payments.ts';

/** Buyers, and the number of interleaved rounds. With many buyers one round has thousands of samples. */
const BUYERS: readonly (readonly [buyers: number, rounds: number])[] = [
  [1, 3],
  [16, 3],
  [64, 3],
  [256, 2],
  [512, 2],
];

/**
 * Measures paid calls end to end with pre-signed payments: our service beside the SDK's Express middleware, on one chain, in one run. With
 * `--before FOLDER`, beside the service of another checkout.
 */
export async function benchPaid([option, before, ...others]: readonly string[] = []): Promise<void> {
  if (option !== undefined) {
    if (option !== '--before' || before === undefined || others.length > 0)
      throw new Usage('usage: paid [--before FOLDER]');
    return benchPaidBefore(before);
  }
  const network = await startEmbeddedNetwork();
  const rival = createAccount();
  await network.fundNative(rival.address, 10n ** 21n);
  const chain = { RPC_URL: network.rpcUrl, RELAYER_KEY: rival.privateKey, SELLER: network.seller, USDC: network.usdc };
  const express = await startSubject('scripts/bench/servers/express.ts', 4111, '/', chain);
  const env = {
    PUBLIC_ORIGIN: 'http://127.0.0.1:4112',
    LOG_LEVEL: 'warn',
    PAYER_MAX_OPEN: '0',
    RELAYER_DAILY_GAS_USDC: 'off',
    WS_URLS: network.wsUrl,
  };
  const percall = await startService(4112, '/readyz', { ...embeddedEnvironment(network), ...env });
  const sellers: Seller[] = [];
  for (const [name, url, relayer] of [
    ['@x402/express', `${express.origin}/paid`, rival.address],
    ['percall', `${percall.origin}/v1/paid/fees/estimate`, network.relayer.address],
  ] as const) {
    sellers.push({ name, urls: [url], relayer: relayer.toLowerCase(), challenge: await readChallenge(url) });
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
          const measure = await measurePaid(network, seller, buyers);
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
