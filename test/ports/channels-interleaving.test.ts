import { expect, test } from 'vitest';
import type { LedgerStores } from '../../src/store/ports/stores.ts';
import { createChannelModel } from '../support/ledger/channel-model.ts';
import {
  channelState,
  channelTerms,
  depositSale,
  NETWORK,
  refundOf,
  SEEN_AT,
  voucherSale,
} from '../support/ledger/channel-rows.ts';
import { describePorts, useLedger } from '../support/ledger/ledger-adapters.ts';
import { hash32 } from '../support/ledger/ledger-rows.ts';
import { seed, seededRandom } from '../support/random.ts';

const STEPS = 1000;
const NAMES = ['a', 'b', 'c'];
/** What a run must have done, each refused too where it can be. */
const HAPPENED = ['charge true', 'charge false', 'deposit true', 'deposit false', 'settle true', 'drop true'];
const ALSO = ['refund true', 'refund false', 'endRefund true', 'writeOff true', 'writeOff false', 'note'];

interface World {
  readonly stores: LedgerStores;
  readonly model: ReturnType<typeof createChannelModel>;
  readonly pick: <T>(from: readonly T[]) => T;
  readonly at: number;
}
interface Step {
  readonly what: string;
  readonly is: Promise<unknown>;
  readonly should: unknown;
}

/** Some of what the chain may show: newer or older than noted, a balance that the charges fit into, part of the charges claimed. */
function noteStep({ stores, model, pick, at }: World, name: string): Step {
  const known = model.channels.get(name);
  const newest = Math.max(known?.block ?? 100, known?.depositBlock ?? 0);
  const block = newest + pick([-1, 0, 1, 2]);
  const [charged, claimed] = [known?.charged ?? 0n, known?.claimed ?? 0n];
  const state = { claimed: claimed + (pick([0n, 1n, 1n, 2n]) * (charged - claimed)) / 2n, block };
  const balance = charged + pick([0n, 300n, 3_000n]);
  model.note(name, { ...state, balance });
  const seen = channelState({ balance, totalClaimed: state.claimed, block });
  return { what: 'note', is: stores.channels.note(channelTerms(name), seen, at), should: undefined };
}

const isCharged = async (charge: Promise<object | null>): Promise<boolean> => (await charge) !== null;

function chargeStep({ stores, model, pick, at }: World, name: string): Step {
  const price = pick([1n, 100n, 100n]);
  const charged = model.channels.get(name)?.charged ?? 0n;
  const max = atLeast1(charged + pick([price, price, price, price + 1n, 0n]));
  const should = model.charge(name, max, price, at);
  const sale = voucherSale(`s${at}`, name, max, { nonce: hash32(`s${at}`), price, reservedAt: at });
  return {
    what: `charge ${should}`,
    is: isCharged(stores.channels.charge(sale, Buffer.from('reply'), at + 9)),
    should,
  };
}

/** No voucher is signed over nothing. */
const atLeast1 = (max: bigint): bigint => (max > 0n ? max : 1n);

function depositStep({ stores, model, pick, at }: World, name: string): Step {
  const price = pick([50n, 100n]);
  const max = (model.channels.get(name)?.charged ?? 0n) + price;
  const should = model.deposit(name, { id: `d${at}`, max, price, amount: 2_000n });
  const row = depositSale(`d${at}`, name, max, { price, amount: 2_000n });
  return { what: `deposit ${should}`, is: stores.payments.reserve(row, 0, null), should };
}

/** The end of an open deposit, or the try to end one that is not there. */
function endStep({ stores, model, pick, at }: World, name: string): Step {
  const known = model.channels.get(name);
  const id = known?.deposit?.id ?? 'none';
  if (pick([true, true, false])) {
    const block = Math.max(known?.block ?? 100, known?.depositBlock ?? 0) + pick([0, 1]);
    const should = model.settle(name, block, at);
    const change = { block, endedAt: at, signature: null, charged: 2_000n };
    return { what: `settle ${should}`, is: stores.payments.move(id, ['reserved'], 'settled', change), should };
  }
  const should = model.drop(name);
  const is = pick([true, false])
    ? stores.payments.release(id, ['reserved'])
    : stores.payments.move(id, ['reserved'], 'failed', { reason: 'x', signature: null, endedAt: at });
  return { what: `drop ${should}`, is, should };
}

function refundStep({ stores, model, pick, at }: World, name: string): Step {
  const open = model.channels.get(name)?.refund;
  if (open) {
    const end = { state: 'failed', reason: 'x', endedAt: at } as const;
    return { what: 'endRefund true', is: stores.channels.end(open, end), should: model.endRefund(name) };
  }
  const charged = (model.channels.get(name)?.charged ?? 0n) + pick([0n, 0n, 1n]);
  const should = model.refund(name, `r${at}`, charged);
  return {
    what: `refund ${should}`,
    is: stores.channels.begin(refundOf(`r${at}`, name), { charged: charged }),
    should,
  };
}

function writeOffStep({ stores, model, pick }: World, name: string): Step {
  const known = model.channels.get(name);
  const [amount, upTo] = [pick([1n, 10n, 150n]), (known?.charged ?? 0n) - pick([0n, 0n, 1n])];
  const should = model.writeOff(name, amount, upTo);
  return { what: `writeOff ${should}`, is: stores.channels.writeOff(channelTerms(name).id, amount, upTo), should };
}

/** Compares every channel and every sum with the model, and the charges with the sales that they are made of. */
async function compare({ stores, model }: Pick<World, 'stores' | 'model'>, sold: ReadonlyMap<string, bigint>) {
  const sums = { charged: 0n, claimed: 0n, writtenOff: 0n };
  for (const [name, wanted] of model.channels) {
    const is = await stores.channels.get(channelTerms(name).id);
    const { charged, writtenOff, unclaimedSince, balance, claimed, block } = wanted;
    expect(is).toMatchObject({ charged, writtenOff, unclaimedSince, state: { balance, totalClaimed: claimed, block } });
    expect(charged).toBe(claimed + model.left(name) + writtenOff);
    const open = wanted.deposit ? 'deposit' : wanted.refund ? 'refund' : null;
    expect(await stores.channels.findOpen(channelTerms(name).id)).toBe(open);
    sums.charged += charged;
    sums.claimed += claimed;
    sums.writtenOff += writtenOff;
    expect(sold.get(name) ?? 0n).toBe(charged);
  }
  expect(await stores.channels.totals(NETWORK)).toEqual(sums);
}

describePorts('payment channels under any order of calls', (adapter) => {
  const ledger = useLedger(adapter, { synced: false });

  test(`charge, claim and refund as a model does, and every sum adds up after ${STEPS} steps`, async () => {
    process.stdout.write(`channels-interleaving (${adapter.name}): SEED=${seed}\n`);
    const random = seededRandom('channels');
    const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
    const model = createChannelModel();
    const counts = new Map<string, number>();
    const steps = [
      noteStep,
      chargeStep,
      chargeStep,
      chargeStep,
      depositStep,
      endStep,
      endStep,
      refundStep,
      writeOffStep,
    ];
    for (let at = 0; at < STEPS; ) {
      const burst: Step[] = [];
      for (const size = pick([1, 3, 8]); burst.length < size && at < STEPS; at++) {
        const world = { stores: ledger.stores, model, pick, at: SEEN_AT + at };
        burst.push(pick(steps)(world, pick(NAMES)));
      }
      const ends = await Promise.all(burst.map(({ is }) => is));
      for (const [one, { what, should }] of burst.entries()) {
        counts.set(what, (counts.get(what) ?? 0) + 1);
        if (should !== undefined) expect(ends[one], `${what}, step ${at}`).toBe(should);
      }
      if (at % 10 < 3) await compare({ stores: ledger.stores, model }, await soldOf(ledger.sql));
    }
    await compare({ stores: ledger.stores, model }, await soldOf(ledger.sql));
    for (const what of [...HAPPENED, ...ALSO]) expect(counts.get(what) ?? 0, what).toBeGreaterThan(0);
  });
});

/** What the settled sales of each channel cost together, by the channel's name. */
async function soldOf(sql: (text: string) => Promise<Record<string, unknown>[]>): Promise<ReadonlyMap<string, bigint>> {
  const rows = await sql(
    `SELECT channel_id, CAST(sum(charged) AS TEXT) AS sum FROM usdc_payments WHERE state = 'settled' GROUP BY channel_id`,
  );
  const names = new Map(NAMES.map((name) => [Buffer.from(channelTerms(name).id).toString('hex'), name]));
  return new Map(
    rows.map((row) => [
      names.get(Buffer.from(row.channel_id as Uint8Array).toString('hex')) ?? 'unknown',
      BigInt(row.sum as string),
    ]),
  );
}
