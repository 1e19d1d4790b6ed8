import { describe, expect, it } from 'vitest';
import { TooMany } from '../../../../../src/errors.ts';
import { createMinuteWindows, type MinuteWindows } from '../../../../../src/lib/limits/count.ts';
import { createIssuance, type Issuance } from '../../../../../src/payment/lightning/issuance.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';

/** A minute of the clock begins here. */
const MINUTE_START = 1_700_000_040_000;

const unpaid = (client: string) => ({ client, isBuyer: false, isNewcomer: false });
const newcomer = (client: string) => ({ client, isBuyer: false, isNewcomer: true });
const buyer = (client: string) => ({ client, isBuyer: true, isNewcomer: false });
const addresses = (count: number): string[] => Array.from({ length: count }, (_, at) => `192.0.2.${at}`);

/** How many of `calls` were let through. */
async function admitted(issue: Issuance, client: string, calls: number, isBuyer = false): Promise<number> {
  let count = 0;
  for (let i = 0; i < calls; i++) {
    try {
      await issue({ client, isBuyer, isNewcomer: false });
      count++;
    } catch (error) {
      expect(error).toBeInstanceOf(TooMany);
      expect(error).toMatchObject({ status: 429, code: 'exact_lnbtc_invoice_issuance_denied', charged: false });
    }
  }
  return count;
}

/** Takes in turns until none gets any more; returns how many each has. */
async function takeAll(issue: Issuance, clients: readonly string[], isBuyer = false): Promise<number[]> {
  const counts = clients.map(() => 0);
  for (let went = true; went; ) {
    went = false;
    for (const [at, client] of clients.entries()) {
      if ((await admitted(issue, client, 1, isBuyer)) === 0) continue;
      counts[at]! += 1;
      went = true;
    }
  }
  return counts;
}

describe('the limit of one client', () => {
  it('is its number a minute of the clock, and again in the next', async () => {
    const clock = createManualClock(MINUTE_START + 5000);
    const issue = createIssuance({ client: 3, total: 0 }, clock);
    expect(await admitted(issue, 'a', 5)).toBe(3);
    expect(await admitted(issue, 'b', 5)).toBe(3);
    await clock.advance(54_999);
    expect(await admitted(issue, 'a', 1)).toBe(0);
    await clock.advance(1);
    expect(await admitted(issue, 'a', 5)).toBe(3);
  });

  it('says when the next minute begins', async () => {
    const clock = createManualClock(MINUTE_START);
    const issue = createIssuance({ client: 1, total: 0 }, clock);
    await issue(unpaid('a'));
    for (const [passed, left] of [
      [0, 60],
      [20_500, 40],
      [39_499, 1],
    ] as const) {
      await clock.advance(passed);
      await expect(issue(unpaid('a'))).rejects.toEqual(
        expect.objectContaining({
          retryAfterSeconds: left,
          message: 'More than 1 new invoices a minute for one client; pay one that you have, or wait.',
        }),
      );
    }
  });

  it('is the same for a buyer', async () => {
    const issue = createIssuance({ client: 2, total: 0 }, createManualClock(0));
    expect(await admitted(issue, 'a', 5, true)).toBe(2);
  });

  it('is four times as much for an IPv6 /48, whose other networks use up nothing of it once it is reached', async () => {
    const clock = createManualClock(MINUTE_START);
    const issue = createIssuance({ client: 2, total: 0 }, clock);
    const networks = Array.from({ length: 10 }, (_, at) => `2001:db8:1:${at.toString(16)}::/64`);
    expect(await takeAll(issue, networks)).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 0, 0]);
    await expect(issue(unpaid(networks[9]!))).rejects.toThrow('More than 8 new invoices a minute for one network');
    expect(await admitted(issue, '2001:db8:2:0::/64', 5)).toBe(2);
    await clock.advance(60_000);
    expect(await admitted(issue, networks[9]!, 5)).toBe(2);
  });

  it('does not let a network over its own limit use up its site’s', async () => {
    const issue = createIssuance({ client: 2, total: 0 }, createManualClock(0));
    expect(await admitted(issue, '2001:db8:1:0::/64', 50)).toBe(2);
    expect(await admitted(issue, '2001:db8:1:1::/64', 50)).toBe(2);
  });

  it('is off at 0, and so is its site’s', async () => {
    const issue = createIssuance({ client: 0, total: 0 }, createManualClock(0));
    expect(await admitted(issue, 'a', 1000)).toBe(1000);
    expect(await admitted(issue, '2001:db8:1:0::/64', 100)).toBe(100);
    const shared = createIssuance({ client: 0, total: 100 }, createManualClock(0));
    expect(await admitted(shared, '2001:db8:1:0::/64', 100)).toBe(40);
  });
});

describe('the limit of all clients', () => {
  it.each([
    { greedy: 1, each: 240 },
    { greedy: 3, each: 120 },
    { greedy: 15, each: 30 },
    { greedy: 19, each: 24 },
    { greedy: 95, each: 5 },
  ])('leaves as much to the next client as each of $greedy greedy ones has', async ({ greedy, each }) => {
    const issue = createIssuance({ client: 0, total: 600 }, createManualClock(0));
    expect(await takeAll(issue, addresses(greedy))).toEqual(Array(greedy).fill(each));
    // One in turns, as before, with no other client asking: half of what is left, and one more where it is odd.
    expect(await admitted(issue, 'next', 1000)).toBe(Math.ceil(each / 2));
  });

  it('is shared by an IPv6 /48 as by one client', async () => {
    const issue = createIssuance({ client: 0, total: 100 }, createManualClock(0));
    const networks = Array.from({ length: 30 }, (_, at) => `2001:db8:1:${at.toString(16)}::/64`);
    expect((await takeAll(issue, networks)).reduce((sum, count) => sum + count, 0)).toBe(40);
    expect(await admitted(issue, '2001:db8:2:0::/64', 1)).toBe(1);
  });

  it('keeps a fifth for buyers, who share it in the same way and may use the rest too', async () => {
    const issue = createIssuance({ client: 0, total: 600 }, createManualClock(0));
    const strangers = await takeAll(issue, addresses(480));
    expect(strangers).toEqual(Array(480).fill(1));
    expect(await admitted(issue, 'late', 10)).toBe(0);
    // No other client could have more than its equal share, one.
    expect(await takeAll(issue, ['buyer', 'other buyer'], true)).toEqual([40, 40]);
    expect(await admitted(issue, 'late', 10)).toBe(0);
    expect(await admitted(issue, 'third buyer', 10, true)).toBe(10);
    const alone = createIssuance({ client: 0, total: 600 }, createManualClock(0));
    expect(await admitted(alone, 'buyer', 1000, true)).toBe(300);
  });

  it('rounds the reserve down: a total of four has none', async () => {
    const issue = createIssuance({ client: 0, total: 4 }, createManualClock(0));
    expect(await takeAll(issue, addresses(4))).toEqual([1, 1, 1, 1]);
    const five = createIssuance({ client: 0, total: 5 }, createManualClock(0));
    expect(await takeAll(five, addresses(5))).toEqual([1, 1, 1, 1, 0]);
    expect(await admitted(five, 'buyer', 1, true)).toBe(1);
  });

  it('is not used up by a client that is refused, for whatever reason', async () => {
    const issue = createIssuance({ client: 1, total: 12 }, createManualClock(0));
    expect(await admitted(issue, 'greedy', 50)).toBe(1);
    const networks = Array.from({ length: 50 }, (_, at) => `2001:db8:1:${at.toString(16)}::/64`);
    expect((await takeAll(issue, networks)).reduce((sum, count) => sum + count, 0)).toBe(4);
    // Ten for clients that have not paid, of which five are taken.
    expect(await takeAll(issue, addresses(20))).toEqual([...Array(5).fill(1), ...Array(15).fill(0)]);
    await expect(issue(unpaid('late'))).rejects.toThrow('More than 12 new invoices a minute for all clients together');
    expect(await takeAll(issue, ['a', 'b', 'c'], true)).toEqual([1, 1, 0]);
  });

  it('does not count a refused attempt, its client, or its network', async () => {
    const clock = createManualClock(0);
    const all = new Map<string, MinuteWindows>();
    const open = (name: string): MinuteWindows => {
      const windows = all.get(name) ?? createMinuteWindows(clock);
      all.set(name, windows);
      return windows;
    };
    const issue = createIssuance({ client: 5, total: 10 }, clock, open);
    // Eight for clients that have not paid: four are left when one has four.
    expect(await admitted(issue, 'a', 4)).toBe(4);
    expect(await admitted(issue, '2001:db8:1:0::/64', 20)).toBe(2);
    expect(await admitted(issue, 'b', 20)).toBe(1);
    // A count returns the number of the next event.
    const next = (name: string, key: string) => open(name).count(`0 ${key}`).count;
    expect(next('invoices for a client', 'b')).toBe(2);
    expect(next('invoices for a client', '2001:db8:1:0::/64')).toBe(3);
    expect(next('invoices for a client', '2001:db8:1::/48')).toBe(3);
    expect([next('invoices', ''), next('clients with invoices', '')]).toEqual([8, 4]);
  });

  it('begins anew with each minute of the clock, for all clients at once', async () => {
    const clock = createManualClock(MINUTE_START + 59_000);
    const issue = createIssuance({ client: 0, total: 10 }, clock);
    expect(await takeAll(issue, addresses(8))).toEqual(Array(8).fill(1));
    await clock.advance(1000);
    expect(await takeAll(issue, addresses(8))).toEqual(Array(8).fill(1));
    await clock.advance(59_999);
    expect(await admitted(issue, 'late', 1)).toBe(0);
  });

  it('is off at 0', async () => {
    const issue = createIssuance({ client: 5, total: 0 }, createManualClock(0));
    expect((await takeAll(issue, addresses(300))).every((count) => count === 5)).toBe(true);
  });
});

describe('an equal share', () => {
  const HONEST = '198.51.100.1';
  /** Each takes all that it can get, one client after the other. */
  const takeInSequence = async (issue: Issuance, clients: readonly string[]) => {
    let taken = 0;
    for (const client of clients) taken += await admitted(issue, client, 40);
    return taken;
  };

  it('is all that clients that come one after another get, once the total was short', async () => {
    const clock = createManualClock(MINUTE_START);
    const issue = createIssuance({ client: 30, total: 600 }, clock);
    // Nothing was known in the first minute: each has half of what is left, and the last ones nothing.
    expect(await takeInSequence(issue, addresses(20))).toBe(480);
    expect(await admitted(issue, HONEST, 1)).toBe(0);
    for (let minute = 0; minute < 3; minute++) {
      await clock.advance(60_000);
      const share = Math.floor(480 / (20 + minute));
      expect(await takeInSequence(issue, addresses(20))).toBeLessThanOrEqual(20 * share);
      expect(await admitted(issue, HONEST, 20)).toBeGreaterThanOrEqual(10);
    }
  });

  it('lets one that asks slowly have as much as twenty that ask as fast as they may', async () => {
    const issue = createIssuance({ client: 30, total: 600 }, createManualClock(MINUTE_START));
    let served = 0;
    for (let at = 0; at < 20; at++) {
      for (let round = 0; round < 3; round++) for (const client of addresses(20)) await admitted(issue, client, 1);
      served += await admitted(issue, HONEST, 1);
    }
    expect(served).toBe(20);
  });

  it('binds no client while three quarters are not taken', async () => {
    const clock = createManualClock(MINUTE_START);
    const issue = createIssuance({ client: 0, total: 100 }, clock);
    // Sixty of eighty.
    for (const client of addresses(60)) expect(await admitted(issue, client, 1)).toBe(1);
    await clock.advance(60_000);
    expect(await admitted(issue, HONEST, 100)).toBe(40);
  });

  it('binds all when one more is taken, until a minute that was not short is over', async () => {
    const clock = createManualClock(MINUTE_START);
    const issue = createIssuance({ client: 0, total: 100 }, clock);
    for (const client of addresses(61)) expect(await admitted(issue, client, 1)).toBe(1);
    expect(await admitted(issue, addresses(1)[0]!, 1)).toBe(0);
    await clock.advance(60_000);
    // Sixty-one clients and one more: eighty are one each.
    expect(await admitted(issue, HONEST, 100)).toBe(1);
    expect(await admitted(issue, 'buyer', 100, true)).toBe(50);
    await clock.advance(60_000);
    expect(await admitted(issue, HONEST, 100)).toBe(40);
  });

  it('follows a shortage of the last minute, and of no earlier one', async () => {
    const clock = createManualClock(MINUTE_START);
    const issue = createIssuance({ client: 0, total: 100 }, clock);
    for (const client of addresses(61)) await admitted(issue, client, 1);
    await clock.advance(120_000);
    expect(await admitted(issue, HONEST, 100)).toBe(40);
  });

  it('does not count a shortage that is reported after its minute is over', async () => {
    const clock = createManualClock(MINUTE_START);
    const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const windows = (name: string) => {
      const all = createMinuteWindows(clock);
      return {
        ...all,
        count: async (key: string) => {
          const counted = all.count(key);
          if (name !== 'clients with invoices' || counted.count !== 61) return counted;
          asked.resolve();
          await answered.promise;
          return counted;
        },
      };
    };
    const issue = createIssuance({ client: 0, total: 100 }, clock, windows);
    for (const client of addresses(60)) await admitted(issue, client, 1);
    const sixtyFirst = issue(unpaid('late'));
    await asked.promise;
    await clock.advance(60_000);
    expect(await admitted(issue, HONEST, 1)).toBe(1);
    answered.resolve();
    await sixtyFirst;
    await clock.advance(60_000);
    // The minute before this one had a single invoice.
    expect(await admitted(issue, HONEST, 100)).toBe(40);
  });

  it('counts an IPv6 /48 as one client', async () => {
    const clock = createManualClock(MINUTE_START);
    const issue = createIssuance({ client: 0, total: 100 }, clock);
    const networks = Array.from({ length: 40 }, (_, at) => `2001:db8:1:${at.toString(16)}::/64`);
    await takeAll(issue, [...networks, ...addresses(3)]);
    await clock.advance(60_000);
    // Four clients had invoices; a fifth of eighty is left to one more.
    expect(await admitted(issue, HONEST, 100)).toBe(16);
  });
});

describe('a newcomer', () => {
  const manyAddresses = (count: number) => Array.from({ length: count }, (_, at) => `198.18.${at >> 8}.${at & 255}`);
  /** How many of so many newcomers got one. */
  async function served(issue: Issuance, count: number): Promise<number> {
    const ends = await Promise.allSettled(manyAddresses(count).map((client) => issue(newcomer(client))));
    return ends.filter(({ status }) => status === 'fulfilled').length;
  }
  /** A minute of which strangers that keep asking have taken all that they may. */
  async function startTaken(total = 600) {
    const clock = createManualClock(MINUTE_START);
    const issue = createIssuance({ client: 30, total }, clock);
    await takeAll(issue, manyAddresses(total));
    return { clock, issue };
  }

  it('gets its turn although clients that keep asking have taken all that they may', async () => {
    const { issue } = await startTaken();
    expect(await admitted(issue, '198.51.100.1', 1)).toBe(0);
    await issue(newcomer('198.51.100.1'));
  });

  it('draws on what else is reserved only where it drew on its own part, and a buyer always', async () => {
    const { issue } = await startTaken();
    expect((await issue(newcomer('198.51.100.1'))).hasReserve).toBe(true);
    expect((await issue(buyer('198.51.100.2'))).hasReserve).toBe(true);
    const quiet = createIssuance({ client: 30, total: 600 }, createManualClock(MINUTE_START));
    for (const isFree of [newcomer('a'), unpaid('b')]) expect((await quiet(isFree)).hasReserve).toBe(false);
    expect((await quiet(buyer('c'))).hasReserve).toBe(true);
  });

  it('shares a tenth of the total in portions of two seconds: a burst leaves something to those that come later', async () => {
    const { clock, issue } = await startTaken();
    let all = 0;
    for (let portion = 0; portion < 30; portion++) {
      const now = await served(issue, 50);
      expect(now).toBe(2);
      all += now;
      await clock.advance(2000);
    }
    expect(all).toBe(60);
  });

  it('that must wait gets the time of the next portion, and an invoice then', async () => {
    const { clock, issue } = await startTaken();
    await served(issue, 50);
    await clock.advance(500);
    await expect(issue(newcomer('198.51.100.1'))).rejects.toMatchObject({ retryAfterSeconds: 2 });
    await expect(issue(unpaid('198.51.100.1'))).rejects.toMatchObject({ retryAfterSeconds: 60 });
    await clock.advance(1500);
    await issue(newcomer('198.51.100.1'));
  });

  it('leaves buyers the other half of their reserve, whatever comes new', async () => {
    const { clock, issue } = await startTaken();
    for (let second = 0; second < 59; second++) {
      await served(issue, 200);
      await clock.advance(1000);
    }
    const buyers = await takeAll(issue, addresses(60), true);
    expect(buyers.reduce((sum, count) => sum + count, 0)).toBe(60);
    expect(await served(issue, 50)).toBe(0);
  });

  it('draws on no reserve while others have left enough', async () => {
    const issue = createIssuance({ client: 30, total: 600 }, createManualClock(MINUTE_START));
    expect(await served(issue, 480)).toBe(480);
    expect(await served(issue, 10)).toBe(2);
  });

  it('has no part of a total below ten', async () => {
    const { issue } = await startTaken(9);
    expect(await served(issue, 5)).toBe(0);
  });

  it('is bound by its own limit and by its network’s', async () => {
    const issue = createIssuance({ client: 1, total: 600 }, createManualClock(MINUTE_START));
    await issue(newcomer('198.51.100.1'));
    await expect(issue(newcomer('198.51.100.1'))).rejects.toThrow('for one client');
  });

  it('whose invoice was not made gives its part back', async () => {
    const { issue } = await startTaken();
    const { takeBack } = await issue(newcomer('198.51.100.1'));
    await issue(newcomer('198.51.100.2'));
    await expect(issue(newcomer('198.51.100.3'))).rejects.toBeInstanceOf(TooMany);
    await takeBack();
    await issue(newcomer('198.51.100.3'));
  });
});

describe('an invoice that was not made', () => {
  it('is taken back once, for the client, its site and all', async () => {
    const issue = createIssuance({ client: 2, total: 20 }, createManualClock(0));
    const networks = ['2001:db8:1:0::/64', '2001:db8:1:1::/64', '2001:db8:1:2::/64', '2001:db8:1:3::/64'];
    const undo = [];
    for (const network of networks) for (const _ of [0, 1]) undo.push(await issue(unpaid(network)));
    await expect(issue(unpaid('2001:db8:1:4::/64'))).rejects.toThrow('for one network');
    await undo[0]?.takeBack();
    await undo[0]?.takeBack();
    expect(await admitted(issue, '2001:db8:1:4::/64', 5)).toBe(1);
    for (const { takeBack } of undo) await takeBack();
    expect(await admitted(issue, networks[0]!, 5)).toBe(2);
  });

  it('leaves the total to others', async () => {
    const issue = createIssuance({ client: 0, total: 10 }, createManualClock(0));
    const undo = await Promise.all(addresses(10).map((client) => issue(buyer(client))));
    expect(await admitted(issue, 'other', 1, true)).toBe(0);
    await undo[3]?.takeBack();
    expect(await admitted(issue, 'other', 1, true)).toBe(1);
  });

  it('is nothing to take back where nothing is limited', async () => {
    const issue = createIssuance({ client: 0, total: 0 }, createManualClock(0), () => ({
      count: () => Promise.reject(new Error('nothing is counted')),
      takeBack: () => Promise.reject(new Error('nothing is taken back')),
    }));
    await (await issue(unpaid('a'))).takeBack();
  });
});

it('a request that cannot be counted is refused', async () => {
  const clock = createManualClock(0);
  const clients = createMinuteWindows(clock);
  let away = true;
  const everybody = createMinuteWindows(clock);
  const shaky = {
    count: (key: string) => (away ? Promise.reject(new Error('away')) : everybody.count(key)),
    takeBack: everybody.takeBack,
  };
  const issue = createIssuance({ client: 5, total: 10 }, clock, (name) => (name === 'invoices' ? shaky : clients));
  await expect(issue(unpaid('a'))).rejects.toThrow('away');
  away = false;
  expect(await admitted(issue, 'a', 1)).toBe(1);
});
