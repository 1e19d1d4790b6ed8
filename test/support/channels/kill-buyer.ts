import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { priceOf } from '../prices.ts';
import { presentAndDiscard } from '../service/kill-buyers.ts';
import { type Answer, call } from '../service/service.ts';
import { decoded } from '../usdc/buyer.ts';
import { newKey } from '../usdc/payments.ts';
import { channelBuyer } from './channel-buyer.ts';
import type { SaleLeft, Sales } from './kill-ledger.ts';
import { untilChannelsAreOffered } from './offered.ts';

/** The endpoint reads the chain, so a proxy before the node sees that it runs. */
const ROUTE = '/v1/paid/chain/wallet';
const FAILS = '/v1/paid/selftest/fail';
/** Base units: the prices of a call and of a failing one, more than all calls of a buyer cost, and what one deposit puts into the channel. */
const [PRICE, PRICE_OF_FAILING] = [priceOf(ROUTE).units, priceOf(FAILS).units];
const [FUNDS, DEPOSIT] = [2_000_000_000n, 100_000n];
/** Shares of the calls: those that put money in, those whose endpoint fails, and those whose answer is lost on its way. */
const [DEPOSITS, FAILURES, LOST] = [0.12, 0.1, 0.05];
/** The longest pause between two calls, and how long a final answer may take, in ms. */
const [PAUSE_MS, END_MS] = [15, 120_000];

/** A call that a buyer made. `max`: what it signed in all. `deposit`: what it put into the channel with it. */
export interface Attempt {
  readonly path: string;
  readonly header: string;
  readonly max: bigint;
  readonly deposit: bigint;
}
/** An answer that a buyer has received. */
export interface Heard {
  readonly attempt: Attempt;
  readonly body: string;
}
/** How a call without an answer ended. */
export type End =
  | 'everything heard'
  | 'voucher charged, delivered again'
  | 'voucher charged, told so, then delivered again'
  | 'voucher not charged, bought again'
  | 'deposit sent, delivered again'
  | 'deposit not sent, bought again';

/** How a buyer trades in a round. */
export interface Trading {
  /** Ends the trading of buyers whose service is not killed. */
  readonly ended: AbortSignal;
  /** The first call puts money in. */
  readonly deposits?: boolean | undefined;
  /** The first call's answer is lost. */
  readonly discards?: boolean | undefined;
  /** No call waits for a block that it does not need, and no answer is lost: charges add up until they are claimed. */
  readonly steady?: boolean | undefined;
}

/** A buyer with a channel at a service that tests kill, and the answers that it got. It signs what a stock client would sign. */
export async function newKillBuyer(network: EmbeddedNetwork, origin: string, random: () => number) {
  const { privateKey, address } = newKey();
  await network.fundUsdc(address, FUNDS);
  let [charged, deposited, highest, made] = [0n, 0n, 0n, 0];
  const heard: Heard[] = [];
  let unheard: Attempt | null = null;

  /** Every call asks for another account, so that no answer is another call's. */
  const pathOfNext = (): string =>
    `${ROUTE}?address=0x${(++made).toString(16).padStart(8, '0')}${address.slice(10).toLowerCase()}`;
  const at = async (path: string) => channelBuyer(privateKey, await untilChannelsAreOffered(origin + path));
  const [signer, failing] = [await at(pathOfNext()), await at(FAILS)];
  const show = ({ path, header }: Pick<Attempt, 'path' | 'header'>): Promise<Answer> =>
    call(origin, path, { headers: { 'payment-signature': header } });
  const about = (answer: Answer, context: string): string =>
    `${context}: ${answer.body} ${answer.headers['payment-required'] ?? ''}`;

  function sign(deposits: boolean): Attempt {
    const max = charged + PRICE;
    if (max > highest) highest = max;
    const isShort = deposited < max + PRICE_OF_FAILING;
    const deposit = isShort || deposits ? DEPOSIT : 0n;
    const header = deposit > 0n ? signer.deposit(deposit, max) : signer.voucher(max);
    return { path: pathOfNext(), header, max, deposit };
  }

  function note(attempt: Attempt, body: string): void {
    heard.push({ attempt, body });
    charged = attempt.max;
    deposited += attempt.deposit;
  }

  /** Presents the same call until its final answer. */
  async function toTheEnd(attempt: Attempt, context: string): Promise<Answer> {
    const deadline = Date.now() + END_MS;
    for (;;) {
      const answer = await show(attempt).catch(() => null);
      const mayRetry = answer === null || answer.status === 409 || answer.status === 503;
      if (answer && (!mayRetry || Date.now() > deadline)) {
        expect(answer.status, about(answer, context)).toBe(200);
        return answer;
      }
      expect(Date.now(), `no final answer, ${context}`).toBeLessThan(deadline);
      await delay(100);
    }
  }

  /** Presents a call and never learns its answer. */
  const lose = (attempt: Attempt, ended: AbortSignal): Promise<null> =>
    Promise.race([presentAndDiscard(origin, attempt.path, attempt), once(ended, 'abort').then(() => null)]);

  /** A call whose endpoint fails. Nothing may be charged, whether its answer arrives or not. */
  async function callFailing(context: string): Promise<'heard' | 'gone'> {
    if (deposited < charged + PRICE_OF_FAILING) return 'heard';
    const header = failing.voucher(charged + PRICE_OF_FAILING);
    const answer = await show({ path: FAILS, header }).catch(() => null);
    if (answer?.status === 503) return 'gone';
    if (answer) expect(answer.status, about(answer, context)).toBe(500);
    return answer ? 'heard' : 'gone';
  }

  /** Shows the voucher of the lost call for another one, which is sold, or is told the charges. Returns the sold call. */
  async function buyOther(attempt: Attempt, context: string): Promise<Heard | null> {
    const other = { ...attempt, path: pathOfNext() };
    const answer = await show(other);
    if (answer.status === 200) return { attempt: other, body: answer.body };
    expect(answer.status, about(answer, context)).toBe(402);
    const { error, accepts } = decoded(answer, 'payment-required') as {
      error: string;
      accepts: { extra: { channelState?: { chargedCumulativeAmount: string } } }[];
    };
    expect(error, context).toMatch(/cumulative_(amount_mismatch|below_claimed)$/);
    const told = accepts.find(({ extra }) => extra.channelState)?.extra.channelState;
    expect(told?.chargedCumulativeAmount, context).toBe(String(attempt.max));
    return null;
  }

  return {
    id: bytesToHex(signer.id),
    address,
    privateKey,
    signer,
    path: pathOfNext,
    /** What the buyer was told: the channel's charges and its deposits, and the most that it has signed for a call that can succeed. */
    told: () => ({ charged, deposited, highest }),
    funds: FUNDS,
    depositSize: DEPOSIT,
    /** Every answer since the last call of this. */
    takeHeard: () => heard.splice(0),
    /** The call without an answer; null when every call was answered. */
    unheard: () => unheard,
    /** Opens the channel with the first call. */
    open: async (context: string): Promise<void> => {
      const attempt = sign(true);
      note(attempt, (await toTheEnd(attempt, context)).body);
    },
    /** Makes one call after the other until the trading has ended, or until an answer is lost. */
    trade: async ({ ended, deposits = false, discards = false, steady = false }: Trading, context: string) => {
      for (let isFirst = true; !ended.aborted; isFirst = false) {
        await delay(random() * PAUSE_MS);
        if (!isFirst && random() < FAILURES && (await callFailing(context)) === 'gone') return;
        const attempt = sign(isFirst ? deposits : !steady && random() < DEPOSITS);
        const isLost = isFirst ? discards : !steady && random() < LOST;
        unheard = attempt;
        const answer = await (isLost ? lose(attempt, ended) : show(attempt)).catch(() => null);
        // An instance whose leader was killed cannot say how a deposit ends.
        if (!answer || answer.status === 503) return;
        expect(answer.status, about(answer, context)).toBe(200);
        unheard = null;
        note(attempt, answer.body);
      }
    },
    /** Settles how the call without an answer ended. `sales`: those in the ledger of the dead service. `now`: those in the ledger as it is now. */
    comeBack: async (sales: Sales, now: () => Promise<Sales>, context: string): Promise<End> => {
      const attempt = unheard;
      unheard = null;
      if (!attempt) return 'everything heard';
      const row: SaleLeft | null = sales(signer.id, attempt.max);
      let isTold = false;
      if (attempt.deposit === 0n && random() < 0.3) {
        const sold = await buyOther(attempt, context);
        const isCharged = (await now())(signer.id, attempt.max)?.state === 'settled';
        expect(isCharged, context).toBe(true);
        if (sold) {
          expect(row, context).toBeNull();
          note(sold.attempt, sold.body);
          return 'voucher not charged, bought again';
        }
        isTold = true;
      }
      const { body } = await toTheEnd(attempt, context);
      if (row?.state === 'settled') expect(body, context).toBe(row.reply);
      note(attempt, body);
      if (attempt.deposit > 0n)
        return row?.transaction ? 'deposit sent, delivered again' : 'deposit not sent, bought again';
      if (isTold) return 'voucher charged, told so, then delivered again';
      return row ? 'voucher charged, delivered again' : 'voucher not charged, bought again';
    },
    /** Presents an answered call again, which must bring the same bytes. */
    checkAgain: async ({ attempt, body }: Heard, context: string): Promise<void> => {
      expect((await toTheEnd(attempt, context)).body, context).toBe(body);
    },
  };
}

export type KillBuyer = Awaited<ReturnType<typeof newKillBuyer>>;
