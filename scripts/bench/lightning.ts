import { join } from 'node:path';
import { freePort } from '../../dev/child.ts';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { embeddedEnvironment } from '../../dev/serve.ts';
import { offeredBy, proofHeader } from '../../test/support/lightning/lightning-buyer.ts';
import { call } from '../../test/support/service/service.ts';
import { type Checkout, type Comparison, inTurns, ratio, readComparison, startCheckout } from './checkouts.ts';
import { cpuMsOfAll, median, percentile, type Subject } from './lib.ts';

const PATH = '/v1/lightning/fees/estimate';
const BUYERS = 8;
const ROUNDS = 5;
/** The two nodes of the local network are in this process, and make some 60 payments a second. */
const CALLS = 200;

interface Side {
  readonly name: string;
  readonly service: Subject;
  /** Of each round: milliseconds of processor time of the service and of PostgreSQL for a call. */
  readonly cpu: number[];
  readonly database: number[];
  /** Milliseconds from the payment's end to the answer. */
  readonly redeemed: number[];
}

/**
 * Measures calls that are paid in bitcoin: the offer of an invoice, its payment by the buyer's node, and the answer for
 * its preimage. With `--before FOLDER`: beside the service of another checkout, in alternating rounds.
 */
export async function benchLightning(options: readonly string[] = []): Promise<void> {
  const comparison = await readComparison('lightning', options);
  const network = await startEmbeddedNetwork({ lightning: true });
  const sides: Side[] = [];
  try {
    for (const one of comparison.checkouts) sides.push(await open(network, one, comparison));
    const databaseMs = () => (comparison.postgres ? cpuMsOfAll(comparison.postgres.pid()) : 0);
    // Round 0 warms up.
    for (let round = 0; round <= ROUNDS; round++)
      await inTurns(sides, round, (side) => measureRound(network, side, round > 0, databaseMs));
  } finally {
    for (const { service } of sides) await service.stop();
    await network.stop();
    await comparison.postgres?.stop();
  }
  report(sides);
}

async function open(network: EmbeddedNetwork, { name, folder }: Checkout, { postgres }: Comparison): Promise<Side> {
  const port = await freePort();
  await postgres?.createDatabase(name);
  const service = await startCheckout(folder, port, '/readyz', {
    ...embeddedEnvironment(network),
    ...(postgres && { LEDGER_URL: postgres.url(name) }),
    PUBLIC_ORIGIN: `http://127.0.0.1:${port}`,
    DATA_DIR: join(network.dataDir, `lightning-${name}`),
    LOG_LEVEL: 'warn',
    COLLECTOR: 'off',
  });
  return { name, service, cpu: [], database: [], redeemed: [] };
}

async function measureRound(
  { lightning }: EmbeddedNetwork,
  { service, cpu, database, redeemed }: Side,
  counts: boolean,
  databaseMs: () => number,
): Promise<void> {
  if (!lightning) throw new Error('the network has no Lightning nodes');
  const [cpuBefore, databaseBefore] = [cpuMsOfAll(service.pid), databaseMs()];
  const times: number[] = [];
  let left = CALLS;
  // One client's calls of the same request share an invoice, so each buyer is another client.
  const buy = async (from: string) => {
    while (left-- > 0) {
      const accepted = offeredBy(await call(service.origin, PATH, { from }));
      const payment = proofHeader(accepted, await lightning.pay(accepted.extra.invoice));
      const sent = performance.now();
      const answer = await call(service.origin, PATH, { from, headers: { 'payment-signature': payment } });
      if (answer.status !== 200) throw new Error(`not sold: ${answer.status} ${answer.body}`);
      times.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: BUYERS }, (_, at) => buy(`127.0.0.${at + 2}`)));
  if (!counts) return;
  cpu.push((cpuMsOfAll(service.pid) - cpuBefore) / CALLS);
  database.push((databaseMs() - databaseBefore) / CALLS);
  redeemed.push(...times);
}

function report(sides: readonly Side[]): void {
  console.log(`calls paid over Lightning, ${BUYERS} buyers, medians of ${ROUNDS} interleaved rounds of ${CALLS} calls`);
  console.log('checkout  redeem p50 ms  p99 ms  CPU ms a call  of the database');
  for (const { name, cpu, database, redeemed } of sides) {
    const figures = [
      percentile(redeemed, 0.5).toFixed(1).padStart(13),
      percentile(redeemed, 0.99).toFixed(1).padStart(7),
      median(cpu).toFixed(2).padStart(14),
      median(database).toFixed(2).padStart(16),
    ];
    console.log([name.padEnd(9), ...figures].join(' '));
  }
  const [before, after] = sides;
  if (before && after)
    console.log(
      `after / before: ${ratio(before.cpu, after.cpu)} CPU a call, ${ratio(before.database, after.database)} of the database`,
    );
}
