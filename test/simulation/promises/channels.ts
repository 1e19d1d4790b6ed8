import type { ChannelHistory } from '../record/channel-history.ts';
import type { Presentation, Voucher } from '../record/presentation.ts';
import type { Hex } from '../world/chain/keys.ts';
import { channelOf } from '../world/chain/settlement.ts';
import type { World } from '../world/world.ts';
import type { Calm } from './calm.ts';
import { createVoucherJudge } from './channel-paid.ts';
import { type ChannelRow, readChannels } from './ledger.ts';
import type { Tell } from './promise.ts';

/** A service at peace has seen a withdrawal and claimed what it could take within this time: rounds of some seconds, and a transaction. */
const CLAIMED_MS = 45_000;
/** Between two refunds of one channel, as the service says, less what it takes to see the end of one. */
const REFUND_PAUSE_MS = 600_000 - 30_000;
const DAY_MS = 86_400_000;
/** Of one payer: three that its buyer asks for, and one for a third party. */
const REFUNDS_A_DAY = 4;

/** What a payer has presented for one channel. */
interface Promised {
  /** The largest ceiling that its key has signed. */
  most: bigint;
  /** The voucher of the largest ceiling that an answer was sold for. */
  sold: bigint;
  /** Prices of the answers that were sold, by the ceilings that bought them. */
  readonly prices: Map<bigint, bigint>;
}

/** Channels by the ledger and by the chain, after each step: no charge without a voucher, none lost, and the escrow behind each. */
export function createChannelCheck(world: World, history: ChannelHistory, calm: Calm, tell: Tell) {
  const { chain, book, scenario, scheduler, accounts } = world;
  const judge = createVoucherJudge(world);
  const promised = new Map<Hex, Promised>();
  const configs = new Map<Hex, Voucher['config']>();
  let seen = 0;
  let judged = '';
  let handed = 0;

  function promisedOf(id: Hex): Promised {
    const known = promised.get(id) ?? { most: 0n, sold: 0n, prices: new Map() };
    promised.set(id, known);
    return known;
  }

  function readPresented(): void {
    const all = book.presentations();
    for (; seen < all.length; seen++) {
      const { voucher } = all[seen] as Presentation;
      if (!voucher || judge(voucher) !== null) continue;
      configs.set(voucher.channelId, voucher.config);
      const known = promisedOf(voucher.channelId);
      if (voucher.max > known.most) known.most = voucher.max;
    }
  }

  book.onAnswered(({ voucher, reported, route }) => {
    if (!voucher || voucher.kind === 'refund' || reported?.status !== 200) return;
    const known = promisedOf(voucher.channelId);
    if (voucher.max > known.sold) known.sold = voucher.max;
    known.prices.set(voucher.max, route.price);
  });

  const name = (id: Hex): string => `channel ${id.slice(0, 10)}`;

  function checkRow(row: ChannelRow): void {
    const { id, charged, writtenOff, balance, claimed, signature, sold: sum } = row;
    const { most, sold, prices } = promisedOf(id);
    const onChain = channelOf(chain.viewAt(chain.head()), id);
    if (charged > most)
      tell('no charge above its ceiling', `${name(id)} is charged ${charged}, and its payer has signed ${most}`);
    if (onChain.totalClaimed > charged)
      tell('no charge above its ceiling', `${onChain.totalClaimed} of ${name(id)} are claimed, and ${charged} charged`);
    const paid = [...prices.values()].reduce((sum, price) => sum + price, 0n);
    if (sold > charged || paid > charged)
      tell(
        'a charge is never lost',
        `answers for ${paid} up to ${sold} were sold from ${name(id)}, charged is ${charged}`,
      );
    if (sum !== charged) tell('a channel adds up', `${name(id)} is charged ${charged}, and its sales come to ${sum}`);
    if (claimed > onChain.totalClaimed || claimed + writtenOff > charged)
      tell('a channel adds up', `of ${name(id)} ${claimed} count as claimed and ${writtenOff} as lost, of ${charged}`);
    const deposited = history.of(id).reduce((total, one) => total + (one.kind === 'deposited' ? one.units : 0n), 0n);
    if (balance > deposited)
      tell(
        'no deposit is made twice',
        `${balance} count as the balance of ${name(id)}, and ${deposited} were deposited`,
      );
    const config = configs.get(id);
    const isClaimable =
      !signature ||
      !config ||
      judge({ kind: 'voucher', config, channelId: id, max: charged, signature: Buffer.from(signature) }) === null;
    if (!isClaimable)
      tell('a charge is never lost', `the voucher that is kept for ${name(id)} is not over its charges`);
    checkEscrow(row, onChain.balance);
  }

  /** What is charged is in the channel, until a payer withdraws it whom the service had no time to forestall. */
  function checkEscrow({ id, charged }: ChannelRow, balance: bigint): void {
    if (charged <= balance || chain.viewAt(chain.head()).get(`poisoned ${id}`)) return;
    const events = history.of(id);
    const last = events.findLastIndex(({ kind }) => kind === 'withdrawFinalized');
    const asked = events.slice(0, last).findLast(({ kind }) => kind === 'withdrawInitiated');
    const finalized = events[last];
    if (asked && finalized && calm.longest(asked.atMs, finalized.atMs) < CLAIMED_MS) return;
    const seconds = asked && finalized ? (finalized.atMs - asked.atMs) / 1000 : null;
    const how = seconds === null ? '' : `; its payer withdrew the rest ${seconds} s after asking for it`;
    tell('the escrow covers what is charged', `${charged} are charged from ${name(id)}, which holds ${balance}${how}`);
  }

  function checkRefunds(): void {
    const byPayer = new Map<string, number>();
    const now = scheduler.nowMs();
    for (const [id, { payer }] of configs) {
      const refunds = history.of(id).filter(({ kind }) => kind === 'refunded');
      const close = refunds.find((one, at) => at > 0 && one.atMs - (refunds[at - 1]?.atMs ?? 0) < REFUND_PAUSE_MS);
      if (close) tell('the relayer keeps its bounds', `${name(id)} was refunded twice within ten minutes`);
      const today = refunds.filter(({ atMs }) => atMs > now - DAY_MS).length;
      byPayer.set(payer, (byPayer.get(payer) ?? 0) + today);
    }
    // Each process counts by itself, and forgets when it ends.
    const starts = world.instances.reduce((sum, one) => sum + one.starts(), 0);
    for (const [payer, count] of byPayer)
      if (count > REFUNDS_A_DAY * starts)
        tell('the relayer keeps its bounds', `${payer.slice(0, 10)} was refunded ${count} times in a day`);
  }

  /** Once a deposit's money is in the channel, its authorization is not sent once more. */
  function checkHandings(): void {
    const all = world.handings.all();
    for (; handed < all.length; handed++) {
      const { rail, to, terms, atMs, hash } = all[handed] as (typeof all)[number];
      if (rail !== 'channels' || to !== 'chain') continue;
      const ended = world.evidence.of(terms.from, terms.nonce);
      if (!ended || ended.hash === hash || ended.sender !== accounts.relayer.address) continue;
      const doneMs = chain.timeOf(ended.block) * 1000;
      if (doneMs + CLAIMED_MS < atMs && calm.longest(doneMs, atMs) >= CLAIMED_MS)
        tell('no deposit is made twice', `a deposit was sent again ${(atMs - doneMs) / 1000} s after it was mined`);
    }
  }

  return {
    /** Does nothing where nothing has happened that concerns channels. */
    afterMove(atRest = false): void {
      if (!scenario.channels) return;
      readPresented();
      const state = `${book.presentations().filter(({ voucher, reported }) => voucher && reported).length} ${history.count()}`;
      if (state === judged && !atRest) return;
      judged = state;
      for (const row of readChannels(world)) checkRow(row);
      checkRefunds();
      checkHandings();
    },
    /** Charges that no claim has recorded yet, of channels whose claims are not refused. */
    unclaimed(): string[] {
      if (!scenario.channels) return [];
      const view = chain.viewAt(chain.head());
      return readChannels(world)
        .filter(({ id }) => view.get(`poisoned ${id}`) !== true)
        .filter(({ id, charged, writtenOff }) => charged - writtenOff > channelOf(view, id).totalClaimed)
        .map(
          ({ id, charged }) => `${charged} are charged from ${name(id)}, ${channelOf(view, id).totalClaimed} claimed`,
        );
    },
  };
}
