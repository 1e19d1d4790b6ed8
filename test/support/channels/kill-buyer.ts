import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import type { EmbeddedNetwork } from '../../../src/embedded/network.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { presentAndDiscard } from '../service/kill-buyers.ts';
import { type Answer, call } from '../service/service.ts';
import { decoded } from '../usdc/buyer.ts';
import { newKey } from '../usdc/payments.ts';
import { channelBuyer, channelEntry } from './channel-buyer.ts';

const FAILS = '/v1/paid/selftest/fail';
/** Base units: more than all calls of a buyer cost, and what one deposit puts into the channel. */
const [FUNDS, DEPOSIT] = [2_000_000_000n, 100_000n];
/** Shares of the calls: those that put money in, those whose endpoint fails, and those whose answer is lost on its way. */
const [DEPOSITS, FAILURES, LOST] = [0.12, 0.1, 0.05];
/** The longest pause between two calls, and how long a final answer may take, in ms. */
const [PAUSE_MS, END_MS] = [15, 30_000];

/** A call that a buyer made. `max`: what it signed in all. `deposit`: what it put into the channel with it. */
export interface Attempt {
  readonly path: string;
  readonly header: string;
  readonly max: bigint;
  readonly deposit: bigint;
}
/** A sale in the files of the dead service. */
export interface SaleLeft {
  readonly state: string;
  readonly transaction: string | null;
  readonly reply: string | null;
}
export type End =
  | 'everything heard'
  | 'voucher charged, delivered again'
  | 'voucher charged, told so, then delivered again'
  | 'voucher not charged, bought again'
  | 'deposit sent, delivered again'
  | 'deposit not sent, bought again';

/** A buyer with a channel at a service that tests kill, and the answers that it got. It signs what a stock client would sign. */
export async function newKillBuyer(network: EmbeddedNetwork, origin: string, random: () => number) {
  const { privateKey, address } = newKey();
  await network.fundUsdc(address, FUNDS);
  const at = async (path: string) =>
    channelBuyer(privateKey, channelEntry(String((await call(origin, path)).headers['payment-required'])));
  const [signer, failing] = [await at('/v1/paid/fees/estimate'), await at(FAILS)];
  const [price, priceOfFailing] = [500n, 1000n];
  let [charged, deposited, highest, made] = [0n, 0n, 0n, 0];
  const heard: { attempt: Attempt; body: string }[] = [];
  let unheard: Attempt | null = null;

  const pathOfNext = (): string => `/v1/paid/fees/estimate?gas=${21_000 + ++made}`;
  const show = ({ path, header }: Pick<Attempt, 'path' | 'header'>): Promise<Answer> =>
    call(origin, path, { headers: { 'payment-signature': header } });

  function sign(): Attempt {
    const max = charged + price;
    if (max > highest) highest = max;
    const short = deposited < max + priceOfFailing;
    if (!short && random() >= DEPOSITS) return { path: pathOfNext(), header: signer.voucher(max), max, deposit: 0n };
    return { path: pathOfNext(), header: signer.deposit(DEPOSIT, max), max, deposit: DEPOSIT };
  }

  function note(attempt: Attempt, body: string): void {
    heard.push({ attempt, body });
    charged = attempt.max;
    deposited += attempt.deposit;
  }

  /** Presents the same call until its final answer. */
  async function toTheEnd(attempt: Attempt, context: string): Promise<Answer> {
    const deadline = Date.now() + END_MS;
    let answer = await show(attempt);
    while ((answer.status === 409 || answer.status === 503) && Date.now() < deadline) {
      await delay(100);
      answer = await show(attempt);
    }
    expect(answer.status, `${context}: ${answer.body} ${answer.headers['payment-required'] ?? ''}`).toBe(200);
    return answer;
  }

  /** A call whose endpoint fails. Nothing may be charged, whether its answer arrives or not. */
  async function callFailing(context: string): Promise<'heard' | 'gone'> {
    if (deposited < charged + priceOfFailing) return 'heard';
    const header = failing.voucher(charged + priceOfFailing);
    const answer = await show({ path: FAILS, header }).catch(() => null);
    if (answer) expect(answer.status, `${context}: ${answer.body}`).toBe(500);
    return answer ? 'heard' : 'gone';
  }

  return {
    ...{ id: bytesToHex(signer.id), address, privateKey, signer },
    /** The buyer's knowledge: the channel's charges and its deposits by the answers, and the most that it has signed for a call that can succeed. */
    told: () => ({ charged, deposited, highest }),
    funds: FUNDS,
    depositSize: DEPOSIT,
    /** Every answer since the last call of this. */
    takeHeard: () => heard.splice(0),
    /** Makes one call after the other until the service is gone, or until an answer is lost. */
    trade: async (context: string): Promise<void> => {
      for (;;) {
        await delay(random() * PAUSE_MS);
        if (random() < FAILURES && (await callFailing(context)) === 'gone') return;
        const attempt = sign();
        const answer =
          random() < LOST
            ? await presentAndDiscard(origin, attempt.path, attempt)
            : await show(attempt).catch(() => null);
        if (!answer) {
          unheard = attempt;
          return;
        }
        expect(answer.status, `${context}: ${answer.body} ${answer.headers['payment-required'] ?? ''}`).toBe(200);
        note(attempt, answer.body);
      }
    },
    /** Finds out how the call without an answer ended. `row`: its sale in the files of the dead service. */
    comeBack: async (find: (attempt: Attempt) => SaleLeft | null, context: string): Promise<End> => {
      const attempt = unheard;
      unheard = null;
      if (!attempt) return 'everything heard';
      const row = find(attempt);
      const isCharged = row?.state === 'settled';
      const isTold = false;
      if (attempt.deposit === 0n && random() < 0.3) {
        // Another call with the same voucher is sold, or its refusal names the charges.
        const other = { ...attempt, path: pathOfNext() };
        const answer = await show(other);
        expect(answer.status, `${context}: ${answer.body}`).toBe(isCharged ? 402 : 200);
        if (!isCharged) {
          note(other, answer.body);
          return 'voucher not charged, bought again';
        }
        expect(decoded(answer, 'payment-required').error, context).toMatch(
          /cumulative_(amount_mismatch|below_claimed)$/,
        );
        const { accepts } = decoded(answer, 'payment-required') as {
          accepts: { extra: { channelState?: { chargedCumulativeAmount: string } } }[];
        };
        expect(
          accepts.find(({ extra }) => extra.channelState)?.extra.channelState?.chargedCumulativeAmount,
          context,
        ).toBe(String(attempt.max));
      }
      const { body } = await toTheEnd(attempt, context);
      if (isCharged) expect(body, context).toBe(row.reply);
      note(attempt, body);
      if (attempt.deposit > 0n)
        return row?.transaction ? 'deposit sent, delivered again' : 'deposit not sent, bought again';
      if (isTold) return 'voucher charged, told so, then delivered again';
      return isCharged ? 'voucher charged, delivered again' : 'voucher not charged, bought again';
    },
    /** Presents an answered call again, which must bring the same bytes. */
    checkAgain: async ({ attempt, body }: { attempt: Attempt; body: string }, context: string): Promise<void> => {
      expect((await toTheEnd(attempt, context)).body, context).toBe(body);
    },
  };
}

export type KillBuyer = Awaited<ReturnType<typeof newKillBuyer>>;
