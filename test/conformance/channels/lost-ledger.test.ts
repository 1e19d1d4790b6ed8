import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { hexToBytes } from '../../../src/lib/hex.ts';
import { backUpDatabase } from '../../../src/store/backup.ts';
import { eventsOf } from '../../support/channels/chain-view.ts';
import { channelOnChain } from '../../support/channels/channel-reads.ts';
import { untilChannelsAreOffered } from '../../support/channels/offered.ts';
import { channelEnv, newStockBuyer, type ShownChannel } from '../../support/channels/stock-buyer.ts';
import { createProcess } from '../../support/service/process.ts';
import { startService } from '../../support/service/service.ts';
import { until } from '../../support/service/workers.ts';

// A service that lost its ledger, or went back to a copy of it, beside the same chain. Buyers use the unmodified client of @x402/evm.

const PATH = '/v1/paid/fees/estimate';
const PRICE = 500n;
const DEPOSIT = 100_000n;
const STALE = 'invalid_batch_settlement_evm_cumulative_amount_mismatch';
type Client = ReturnType<Awaited<ReturnType<typeof newStockBuyer>>['open']>;

let network: EmbeddedNetwork;
let folder: string;
let buyers: Awaited<ReturnType<typeof meet>>;
const env = { ...channelEnv('0.1'), CHANNELS_CLAIM_FROM_USDC: '0.002', PRICES: 'fees/estimate=0.0005' };
beforeAll(async () => {
  network = await startEmbeddedNetwork({ blockTimeMs: 100 });
  folder = mkdtempSync(join(tmpdir(), 'percall-lost-'));
  buyers = await meet();
});
afterAll(async () => {
  await network?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The buyers of both tests. Three come before the copy of the ledger, and two after it, so that the copy does not know them. Then the service is killed. */
async function meet() {
  const service = await createProcess(network, join(folder, 'source'), env);
  try {
    await service.start();
    const url = service.origin + PATH;
    await untilChannelsAreOffered(url);
    const [early, late] = [(await newStockBuyer(network)).open(), (await newStockBuyer(network)).open()];
    const bare = (await newStockBuyer(network)).open({ reads: false });
    for (const one of [early, late, bare]) expect(await buy(one, url, 2)).toEqual([200, 200]);
    await backUpDatabase(join(folder, 'source/ledger.db'), join(folder, 'restored/ledger.db'));
    // One channel is claimed after the backup. The others are not.
    expect(await buy(early, url, 2)).toEqual([200, 200]);
    await untilClaimed(early, 4n);
    for (const one of [early, late, bare]) expect(await buy(one, url, 1)).toEqual([200]);
    const [reading, blind] = [await newStockBuyer(network), await newStockBuyer(network)];
    const lost = { client: reading.open(), bare: blind.open({ reads: false }), mended: () => blind.open() };
    for (const one of [lost.client, lost.bare]) {
      expect(await buy(one, url, 4)).toEqual([200, 200, 200, 200]);
      await untilClaimed(one, 4n);
      expect(await buy(one, url, 3)).toEqual([200, 200, 200]);
    }
    return { lost, restored: { early, late, bare } };
  } finally {
    await service.kill();
  }
}

/** Starts the service over the files of a directory. */
async function serve(directory: string) {
  const service = await startService(network, { env, dataDir: join(folder, directory) });
  const url = service.origin + PATH;
  await untilChannelsAreOffered(url);
  return { ...service, url };
}

let calls = 0;
/** Makes calls that no other one equals. Returns their statuses. */
async function buy({ pay }: Client, url: string, count: number): Promise<number[]> {
  const statuses: number[] = [];
  for (let call = 0; call < count; call++) statuses.push((await pay(`${url}?gas=${21_000 + ++calls}`)).status);
  return statuses;
}

function channelOf({ seen }: Client): ShownChannel {
  const shown = seen.findLast(({ receipt }) => receipt)?.receipt?.extra.channelState;
  if (!shown) throw new Error('no receipt');
  return shown;
}
const claimedOf = async (client: Client): Promise<bigint> =>
  (await channelOnChain(network, hexToBytes(channelOf(client).channelId as `0x${string}`))).claimed;
const untilClaimed = (client: Client, calls: bigint) =>
  until(`${calls} calls are claimed`, async () => (await claimedOf(client)) === calls * PRICE);

test('a service that lost its ledger loses what it had not claimed, and charges no buyer for more than it can verify', async () => {
  const { client, bare, mended: open } = buyers.lost;
  const second = await serve('second');
  try {
    client.seen.length = 0;
    // The client signs for eight calls. The service knows of four, which the chain shows, and has no voucher that proves more.
    expect(await buy(client, second.url, 1)).toEqual([200]);
    expect(client.seen.map(({ status, error }) => [status, error])).toEqual([
      [402, 'Payment required'],
      [402, STALE],
      [200, null],
    ]);
    const [, told] = client.seen;
    expect(told).toMatchObject({ receipt: null, told: { channelState: { chargedCumulativeAmount: '2000' } } });
    expect(told?.told).not.toHaveProperty('voucherState');
    expect(await buy(client, second.url, 3)).toEqual([200, 200, 200]);
    // Eleven answers, and eight are charged: the three that were not claimed are the seller's loss.
    expect(channelOf(client).chargedCumulativeAmount).toBe(String(8n * PRICE));
    await untilClaimed(client, 8n);
    expect(await eventsOf(network, 'Deposited', channelOf(client).channelId)).toEqual([DEPOSIT]);
    // A client that cannot read the chain stays with its own record, and is refused and never charged. One that can read it uses the same channel.
    expect(await buy(bare, second.url, 3)).toEqual([402, 402, 402]);
    expect(await claimedOf(bare)).toBe(4n * PRICE);
    const mended = open();
    expect(await buy(mended, second.url, 1)).toEqual([200]);
    expect(channelOf(mended).chargedCumulativeAmount).toBe(String(5n * PRICE));
  } finally {
    await second.stop();
  }
});

test('a service that went back to a backup tells each buyer the charges of the backup, or those that the chain shows, and the buyer goes on', async () => {
  const { early, late, bare } = buyers.restored;
  const second = await serve('restored');
  try {
    for (const one of [early, late]) one.seen.length = 0;
    expect(await buy(late, second.url, 1)).toEqual([200]);
    expect(late.seen[1]).toMatchObject({
      status: 402,
      error: STALE,
      told: { channelState: { chargedCumulativeAmount: '1000' }, voucherState: { signedMaxClaimable: '1000' } },
    });
    expect(channelOf(late).chargedCumulativeAmount).toBe(String(3n * PRICE));
    expect(await buy(early, second.url, 1)).toEqual([200]);
    expect(channelOf(early).chargedCumulativeAmount).toBe(String(5n * PRICE));
    expect(await buy(bare, second.url, 3)).toEqual([402, 402, 402]);
  } finally {
    await second.stop();
  }
});
