import { expect } from 'vitest';
import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { until } from '../service/workers.ts';
import { balanceOf } from '../usdc/buyer.ts';
import { claimedOf } from './chain-view.ts';
import { type End, type KillBuyer, newKillBuyer, type Trading } from './kill-buyer.ts';
import { checkHeard, checkPromises } from './kill-checks.ts';
import { createLeaver, type Leaver, type Way } from './kill-leaver.ts';
import { type Ask, countOpenSales, readOpenOperations, readSales, type Sales } from './kill-ledger.ts';
import type { Remains, Stage } from './kill-points.ts';

/** The settings of a service with channels whose claims are often under way: ten calls of a buyer are claimed. */
export const KILL_LANE = {
  delaySeconds: 900,
  env: {
    CHANNELS: 'on',
    CHANNELS_MIN_DEPOSIT_USDC: '0.1',
    CHANNELS_CLAIM_FROM_USDC: '0.02',
    // The contract's shortest delay.
    CHANNELS_WITHDRAW_DELAY_SECONDS: '900',
    CHANNELS_CLAIM_AFTER_SECONDS: '400',
    RECEIPT_POLL_MS: '50',
    RECONCILE_INTERVAL_MS: '200',
    PAYER_MAX_OPEN: '0',
    COLLECTOR: 'off',
    REDELIVERY_MAX: '1000',
  },
} as const;

/** The service of a lane: one process or several, which are killed and started again over the same ledger. */
export interface KillStage {
  readonly network: EmbeddedNetwork;
  readonly origin: string;
  readonly ask: Ask;
}

/** A rest below this is not refunded, in base units. */
const LEAST_REFUND = 10_000n;

/** One kill of a round. */
export interface Strike extends Omit<Trading, 'ended'> {
  readonly leaves?: Way | undefined;
  /** The other buyers trade from then on; at once without it. */
  readonly begins?: Promise<void> | undefined;
  /** Whether blocks are made, so that a payer may withdraw. */
  readonly mines: boolean;
  /** Kills while `trading` goes on. The kill comes at once when `trading` rejects. Returns the restart. */
  kill(trading: Promise<unknown>): Promise<() => Promise<void>>;
}

/** Buyers that trade, come back and leave, round after round, and the promises after each round. */
export async function createKillLane({ network, origin, ask }: KillStage, count: number, random: () => number) {
  const join = async (): Promise<KillBuyer> => {
    const buyer = await newKillBuyer(network, origin, random);
    await buyer.open('a channel is opened');
    buyer.takeHeard();
    return buyer;
  };
  let buyers = await Promise.all(Array.from({ length: count }, join));
  const leavers: Leaver[] = [];
  const counts: Record<string, number> = {};
  const add = (name: string, amount = 1): void => {
    if (amount > 0) counts[name] = (counts[name] ?? 0) + amount;
  };
  let turns = 0;

  /** One buyer with money left and charges to claim takes its money back. */
  async function chooseLeaver({ leaves, mines }: Strike): Promise<Leaver | null> {
    const kind = leaves ?? (mines && turns++ % 2 === 0 ? (turns % 4 === 1 ? 'refund' : 'withdrawal') : null);
    if (kind === null) return null;
    const claimed = await Promise.all(buyers.map(({ id }) => claimedOf(network, id)));
    const restOf = ({ told }: KillBuyer): bigint => told().deposited - told().charged;
    // The payer's withdrawal takes any rest; a refund pays none that is not worth its gas.
    const hasMoney = buyers.filter((buyer) => restOf(buyer) >= (kind === 'refund' ? LEAST_REFUND : 1n));
    const leaving = hasMoney.find((buyer) => claimed[buyers.indexOf(buyer)] !== buyer.told().charged) ?? hasMoney[0];
    if (!leaving) return null;
    buyers = buyers.filter((buyer) => buyer !== leaving);
    return createLeaver(network, origin, leaving, kind);
  }

  const stageOf = async (transaction: string | null): Promise<Stage> => {
    if (transaction === null) return 'nothing';
    const known = await network.rpc<{ blockNumber: string | null } | null>('eth_getTransactionByHash', [transaction]);
    if (known === null) return 'nothing';
    return known.blockNumber === null ? 'pending' : 'mined';
  };

  async function remainsOf(sales: Sales): Promise<Remains> {
    const calls = buyers.map(async (buyer) => {
      const attempt = buyer.unheard();
      const row = attempt && sales(buyer.signer.id, attempt.max);
      return attempt ? [{ isDeposit: attempt.deposit > 0n, row, stage: await stageOf(row?.transaction ?? null) }] : [];
    });
    const operations = (await readOpenOperations(ask)).map(async (one) => ({
      ...one,
      stage: await stageOf(one.transaction),
    }));
    return { calls: (await Promise.all(calls)).flat(), operations: await Promise.all(operations) };
  }

  /** The buyers present their lost calls again, and some of the answered ones. The leaver's money is on its way. */
  async function comeBack(sales: Sales, sinceMs: number, leaver: Leaver | null, context: string): Promise<void> {
    const now = () => readSales(ask, sinceMs);
    const back = buyers.map(async (buyer) => {
      const heard = buyer.takeHeard();
      const end: End = await buyer.comeBack(sales, now, context);
      add(end);
      for (const answer of heard.slice(-2)) await buyer.checkAgain(answer, context);
      buyer.takeHeard();
    });
    await Promise.all([...back, leaver?.finish(context)]);
    if (!leaver) return;
    leavers.push(leaver);
    add(leaver.kind);
    add('withdrawals that met a claim', leaver.met() > 0 ? 1 : 0);
    buyers.push(await join());
  }

  return {
    counts,
    add,
    /** One round. Returns what the kill has left. */
    round: async (strike: Strike, context: string): Promise<Remains> => {
      const sinceMs = Date.now();
      const leaver = await chooseLeaver(strike);
      // A payer needs no service to withdraw, so some withdraw while it is down.
      const leavesLater = leaver?.kind === 'withdrawal' && !strike.leaves && random() < 0.5;
      const ended = new AbortController();
      const calls = buyers.map(async ({ trade }) => {
        await strike.begins;
        await trade({ ...strike, ended: ended.signal }, context);
      });
      const trading = Promise.all([...calls, leavesLater ? null : leaver?.leave()]);
      const startAgain = await strike.kill(trading);
      ended.abort();
      await trading;
      if (leavesLater) await leaver.leave();
      const sales = await readSales(ask, sinceMs);
      const remains = await remainsOf(sales);
      for (const { kind, transaction } of remains.operations) if (transaction) add(`open ${kind} at the kill`);
      for (const buyer of buyers) {
        const heard = buyer.takeHeard();
        checkHeard(buyer, heard, sales, context);
        add('answered before the kill', heard.length);
      }
      await startAgain();
      await comeBack(sales, sinceMs, leaver, context);
      await until(`nothing is open, ${context}`, async () => (await countOpenSales(ask)) === 0);
      const gone = leavers.map(({ buyer }) => buyer);
      await checkPromises({ network, ask }, buyers, gone, context);
      return remains;
    },
    /** Checks the ends, after everything was claimed: each channel's claims are its charges, the seller holds their sum, and payers get the rest. */
    finish: async (context: string): Promise<void> => {
      const all = [...buyers, ...leavers.map(({ buyer }) => buyer)];
      for (const buyer of all) expect(await claimedOf(network, buyer.id), context).toBe(buyer.told().charged);
      const charged = all.reduce((total, buyer) => total + buyer.told().charged, 0n);
      expect(await balanceOf(network, network.seller), context).toBe(charged);
      await network.rpc('evm_increaseTime', [KILL_LANE.delaySeconds + 1]);
      await Promise.all(leavers.map(({ takeRest }) => takeRest(context)));
    },
  };
}

export type KillLane = Awaited<ReturnType<typeof createKillLane>>;
