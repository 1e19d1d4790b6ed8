import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hexToBytes } from '../../../../../src/lib/hex.ts';
import { createChannelBook } from '../../../../../src/payment/channels/channel.ts';
import { createClaimRisk } from '../../../../../src/payment/channels/claim-health.ts';
import { readPayload } from '../../../../../src/payment/channels/scheme.ts';
import { createTurns } from '../../../../../src/payment/channels/turns.ts';
import { createSellVoucher, StaleVoucher } from '../../../../../src/payment/channels/voucher-sale.ts';
import { createLedger } from '../../../../../src/payment/ledger.ts';
import type { PaidOrder } from '../../../../../src/payment/rail.ts';
import type { LedgerStores } from '../../../../../src/store/ports/stores.ts';
import { CHANNEL_TERMS, channelOf, scheme, voucherPayload } from '../../../../support/channels/channel-payment.ts';
import { adapters, type OpenLedger } from '../../../../support/ledger/ledger-adapters.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';
import { newKey, plainRequirement } from '../../../../support/usdc/payments.ts';

const NETWORK = 'eip155:5042';
const PRICE = 500n;
const STAYS = new AbortController().signal;
const STATE = { balance: 1_000_000n, totalClaimed: 0n, withdrawAmount: 0n, withdrawAt: 0, refundNonce: 0n, block: 7 };
const requirement = plainRequirement(`0x${Buffer.from(CHANNEL_TERMS.receiver).toString('hex')}`);

let open: OpenLedger;
let privateKey: Buffer;
/** How often each endpoint has run. */
let runs: number;
beforeEach(async () => {
  open = await (adapters[0] as (typeof adapters)[number]).open({ synced: false });
  ({ privateKey } = newKey());
  runs = 0;
});
afterEach(() => open.close());

/** One process that sells over the ledger. It counts its reads of earlier sales and of channels. */
function process(stores: LedgerStores, bootId: string) {
  const clock = createManualClock(1_800_000_000_000);
  const [lookups, reads] = [{ count: 0 }, { count: 0 }];
  /** What the answers to the next reads of a channel wait for. */
  const held: Promise<void>[] = [];
  const store = {
    ...stores.channels,
    get: async (id: Uint8Array) => {
      reads.count++;
      const row = await stores.channels.get(id);
      await held.shift();
      return row;
    },
    findSale: (...asked: Parameters<LedgerStores['channels']['findSale']>) => {
      lookups.count++;
      return stores.channels.findSale(...asked);
    },
  };
  const limits = { storeBytes: 1_000_000, keepSeconds: 900, maxDeliveries: 5, maxOpen: 0 };
  const ledger = createLedger({ store: stores.payments, channels: stores.channels, clock, bootId, ...limits });
  const book = createChannelBook({
    store,
    read: async () => STATE,
    network: NETWORK,
    withdrawDelaySeconds: 86_400,
    lastHead: () => null,
    clock,
  });
  const claimLimits = { threshold: 1n, ageMs: 21_600_000 };
  const sell = createSellVoucher({
    store,
    ledger,
    book,
    turns: createTurns(clock),
    status: { cannotSend: () => null },
    limits: claimLimits,
    clock,
    risk: createClaimRisk({ store: stores.channels, network: NETWORK, limits: claimLimits, clock }),
    network: NETWORK,
    log: { error: () => {} },
  });
  return {
    lookups,
    reads,
    held,
    clock,
    /** Presents the voucher over `max` for a request. Returns the answer's text. */
    buy: async (max: bigint, request = 'a', identifier: Uint8Array | null = null): Promise<string> => {
      const payload = readPayload(voucherPayload(privateKey, max));
      const channelId = scheme.channelId(channelOf(privateKey));
      return Buffer.from((await sell({ payload, channelId }, orderOf(request, identifier))).body).toString();
    },
  };
}

function orderOf(request: string, identifierHash: Uint8Array | null = null): PaidOrder {
  return {
    accepted: {},
    requirement,
    route: '/v1/paid/a',
    price: PRICE,
    identifierHash,
    identity: 'one',
    protocol: 'x402',
    requestHash: hexToBytes(`0x${Buffer.from(request).toString('hex').padStart(64, '0')}`),
    asker: { client: 'one', signal: STAYS, hasFailed: false },
    admit: () => {},
    run: async () => {
      runs++;
      return Buffer.from(`answer ${runs}`);
    },
  };
}

test('a voucher over more than what is charged is sold without a look for an earlier sale of it', async () => {
  const { buy, lookups } = process(open.stores, 'first');
  await buy(PRICE);
  const before = lookups.count;
  for (let call = 2n; call <= 5n; call++) expect(await buy(call * PRICE)).toBe(`answer ${call}`);
  expect(lookups.count).toBe(before);
});

test('a sale reads its channel once, and one that waited for its like reads it again and finds the answer', async () => {
  const { buy, reads } = process(open.stores, 'first');
  await buy(PRICE);
  reads.count = 0;
  await buy(2n * PRICE);
  expect(reads.count).toBe(1);
  await Promise.all([buy(3n * PRICE), buy(3n * PRICE)]);
  // The second request reads it before it waits, and in its turn. There it finds the first one's answer.
  expect([reads.count, runs]).toEqual([4, 3]);
});

test('a sale reads its channel again when another one ended after its first read', async () => {
  const { buy, held } = process(open.stores, 'first');
  await buy(PRICE);
  const slow = Promise.withResolvers<void>();
  held.push(slow.promise);
  const late = buy(2n * PRICE);
  const answer = await buy(2n * PRICE);
  slow.resolve();
  expect([await late, runs]).toEqual([answer, 2]);
});

test('a sale with an identifier reads its channel again: the look for the identifier may have taken long', async () => {
  const { buy, reads } = process(open.stores, 'first');
  await buy(PRICE);
  reads.count = 0;
  await buy(2n * PRICE, 'a', randomBytes(32));
  expect(reads.count).toBe(2);
});

test('a voucher that may have bought before is judged by charges read after the look for its sale', async () => {
  const { buy, reads } = process(open.stores, 'first');
  await buy(PRICE);
  reads.count = 0;
  await expect(buy(PRICE, 'b')).rejects.toThrow(StaleVoucher);
  expect(reads.count).toBe(2);
});

describe('a request that waits while the channel is held for a corrected client', () => {
  /** Another process sells the call of the corrected client meanwhile. Resolves to the waiting request's end. */
  async function waitForHold(max: bigint) {
    const [one, two] = [process(open.stores, 'first'), process(open.stores, 'second')];
    await one.buy(PRICE, 'earlier');
    await expect(one.buy(PRICE, 'corrected')).rejects.toThrow(StaleVoucher);
    const waiting = one.buy(max, 'waiting').catch((error: unknown) => error);
    await one.clock.advance(0);
    await two.buy(2n * PRICE, 'corrected');
    const before = runs;
    await one.clock.advance(600);
    return { end: await waiting, runs: runs - before };
  }

  test('runs nothing where another process has charged its voucher', async () => {
    expect(await waitForHold(2n * PRICE)).toMatchObject({ end: expect.any(StaleVoucher), runs: 0 });
  });

  test('is told the charges of now', async () => {
    const { end } = await waitForHold(PRICE);
    expect(end).toMatchObject({ correction: { extra: { channelState: { chargedCumulativeAmount: '1000' } } } });
  });
});

test('a voucher presented again for its request gets the same bytes, and runs nothing', async () => {
  const { buy } = process(open.stores, 'first');
  const answers = [await buy(PRICE), await buy(2n * PRICE), await buy(PRICE), await buy(2n * PRICE)];
  expect([answers, runs]).toEqual([['answer 1', 'answer 2', 'answer 1', 'answer 2'], 2]);
});

test('of one voucher presented often at once one request runs, and all get its bytes', async () => {
  const { buy } = process(open.stores, 'first');
  await buy(PRICE);
  const answers = await Promise.all(Array.from({ length: 6 }, () => buy(2n * PRICE)));
  expect([new Set(answers), runs]).toEqual([new Set(['answer 2']), 2]);
});

test('a voucher that another process has sold gets the same bytes here, although this process knows of lower charges', async () => {
  const [first, second] = [process(open.stores, 'first'), process(await open.another(), 'second')];
  await first.buy(PRICE);
  const bought = await second.buy(2n * PRICE);
  expect([await first.buy(2n * PRICE), runs]).toEqual([bought, 2]);
});

test('a voucher that has bought another request is refused as stale, and runs nothing', async () => {
  const { buy } = process(open.stores, 'first');
  await buy(PRICE);
  await expect(buy(PRICE, 'b')).rejects.toBeInstanceOf(StaleVoucher);
  expect(runs).toBe(1);
});

test('two processes that sell one voucher at once charge it once, and both give the same bytes', async () => {
  const [first, second] = [process(open.stores, 'first'), process(await open.another(), 'second')];
  await first.buy(PRICE);
  const answers = await Promise.all([first.buy(2n * PRICE), second.buy(2n * PRICE)]);
  expect(answers[0]).toBe(answers[1]);
  expect((await open.stores.channels.totals(NETWORK)).charged).toBe(2n * PRICE);
});
