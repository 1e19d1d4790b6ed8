import { beforeEach, describe, expect, test } from 'vitest';
import { RpcError } from '../../../../../src/chain/rpc/wire.ts';
import type { Ask, Effect, Event, State } from '../../../../../src/payment/relayer/state.ts';
import { type Flight, type Job, newest } from '../../../../../src/payment/relayer/transactions.ts';
import { feedAt, freshState, of, prices } from '../../../../support/usdc/relayer-machine.ts';
import { paidReceipt, randomJob } from '../../../../support/usdc/token-node.ts';

// How transactions in flight are followed: the machine alone, each effect answered by the test.

const POLL = { kind: 'wait', ms: 700, timer: { name: 'poll' } };

let state: State;
let nowMs: number;
beforeEach(() => {
  state = freshState();
  nowMs = 1_800_000_000_000;
});

const feed = (event: Event): Effect[] => feedAt(state, nowMs, event);
/** Answers the one effect of this kind. */
function answer(effects: readonly Effect[], kind: Ask['kind'], reported: unknown): Effect[] {
  const asked = effects.filter((effect) => effect.kind === kind);
  expect(asked).toHaveLength(1);
  return feed({ kind, effect: asked[0], answer: reported } as Event);
}

/** A transaction for these that is on its way since now. */
function fly(...jobs: Job[]): Flight {
  const flight = state.flights.open(jobs, prices);
  flight.sentMs = nowMs;
  for (const job of jobs) {
    state.open.add(job);
    job.nonces.add(flight.nonce);
  }
  return flight;
}
/** The look after a poll; what was asked for its receipts. */
function look(): Effect[] {
  const poll = state.watch === 'idle' ? feed({ kind: 'head' }) : [POLL as Effect];
  return answer(poll, 'wait', null);
}
const NONE = { result: null };
const receiptOf = (flight: Flight, ...paid: Job[]) => ({
  result: {
    ...paidReceipt(paid.map(({ intent }) => intent.authorization)),
    transactionHash: newest(flight).hash,
  },
});
const unused = (jobs: readonly Job[]) => jobs.map(() => ({ used: false, hasCode: false }));

describe('the watch over what is in flight', () => {
  test('looks at every new head at once, at a head that comes during a look after that look, and otherwise at the next poll', () => {
    fly(randomJob());
    expect(feed({ kind: 'head' })).toEqual([{ kind: 'listen' }, POLL]);
    expect(feed({ kind: 'head' })).toEqual([{ kind: 'wake', timer: 'poll' }]);
    const first = answer([POLL as Effect], 'wait', null);
    expect(feed({ kind: 'head' })).toEqual([]);
    const second = answer(first, 'fetchReceipts', [NONE]);
    expect(second).toMatchObject([{ kind: 'fetchReceipts', for: 'look' }]);
    expect(answer(second, 'fetchReceipts', [NONE])).toEqual([POLL]);
  });

  test('ends with the last transaction, and begins anew with the next one', () => {
    const job = randomJob();
    const flight = fly(job);
    const effects = answer(look(), 'fetchReceipts', [receiptOf(flight, job)]);
    expect(of(effects, 'stopListening')).toHaveLength(1);
    expect([of(effects, 'wait'), state.watch]).toEqual([[], 'idle']);
    fly(randomJob());
    expect(feed({ kind: 'head' })).toEqual([{ kind: 'listen' }, POLL]);
  });

  test('of a relayer that stops ends before its next look, or with the one under way; until then no payment ends', () => {
    const job = randomJob();
    fly(job);
    const looking = look();
    expect(feed({ kind: 'stopped' })).toEqual([]);
    const late = randomJob();
    expect(feed({ kind: 'submitted', jobs: [late] })).toEqual([
      { kind: 'end', job: late, outcome: { kind: 'unknown' } },
    ]);
    expect(state.queue).toEqual([]);
    expect(answer(looking, 'fetchReceipts', [NONE])).toEqual([
      { kind: 'stopListening' },
      { kind: 'end', job, outcome: { kind: 'unknown' } },
    ]);
  });

  test('of a relayer that stops while it waits looks no more', () => {
    const job = randomJob();
    fly(job);
    const waiting = feed({ kind: 'head' });
    feed({ kind: 'stopped' });
    expect(answer(waiting, 'wait', null)).toEqual([
      { kind: 'stopListening' },
      { kind: 'end', job, outcome: { kind: 'unknown' } },
    ]);
  });
});

describe('a look', () => {
  test('that finds no receipt, or an error in its place, ends nothing and logs nothing', () => {
    for (const reported of [NONE, { error: new RpcError(-32000, 'busy') }, undefined]) {
      const flight = fly(randomJob());
      expect(answer(look(), 'fetchReceipts', [...Array(state.flights.size() - 1).fill(NONE), reported])).toEqual([
        POLL,
      ]);
      expect(state.flights.has(flight)).toBe(true);
    }
  });

  test('that gets another transaction’s receipt logs that, and ends nothing', () => {
    const [job, other] = [randomJob(), randomJob()];
    const flight = fly(job);
    const strange = { ...receiptOf(flight, other).result, transactionHash: `0x${'ab'.repeat(32)}` };
    expect(answer(look(), 'fetchReceipts', [{ result: strange }])).toEqual([
      {
        kind: 'warn',
        detail: { transaction: newest(flight).hash },
        message: 'a receipt was not understood',
      },
      POLL,
    ]);
    expect(state.flights.has(flight)).toBe(true);
  });

  test('that fails logs how much is in flight, and the next one comes in time', () => {
    fly(randomJob());
    const error = new Error('away');
    const [effect] = of(look(), 'fetchReceipts') as Ask[];
    expect(feed({ kind: 'failed', effect: effect as Ask, error })).toEqual([
      { kind: 'warn', detail: { err: error, inFlight: 1 }, message: 'receipts unread' },
      POLL,
    ]);
  });

  test('logs a batch that left some payments unpaid, and no other batch', () => {
    const jobs = [randomJob(), randomJob(), randomJob()];
    const batch = fly(...jobs);
    const { transactionHash } = receiptOf(batch).result;
    const effects = answer(look(), 'fetchReceipts', [receiptOf(batch, ...jobs.slice(0, 1))]);
    expect(of(effects, 'warn')).toEqual([
      {
        kind: 'warn',
        detail: { unpaid: 2, batch: 3, transaction: transactionHash },
        message: 'a batch left some unpaid',
      },
    ]);
    expect(of(effects, 'readPayers')).toMatchObject([{ jobs: jobs.slice(1), for: { after: 'reopen' } }]);
    const paid = [randomJob(), randomJob()];
    const [whole, alone] = [fly(...paid), fly(randomJob())];
    const others = answer(look(), 'fetchReceipts', [receiptOf(whole, ...paid), receiptOf(alone)]);
    expect(of(others, 'warn')).toEqual([]);
    // All of the batch have ended, and the lone one is looked up: no payer is read.
    expect([of(others, 'readPayers'), of(others, 'lookUp').length]).toEqual([[], 1]);
  });

  test('that finds a replacement mined reads only those that it left out and that still wait', () => {
    const [ended, left, kept] = [randomJob(), randomJob(), randomJob()];
    const flight = fly(ended, left, kept);
    state.flights.replace(flight, [kept], prices);
    ended.ended = true;
    const effects = answer(look(), 'fetchReceipts', [NONE, receiptOf(flight, kept)]);
    expect(of(effects, 'readPayers')).toMatchObject([{ jobs: [left], for: { after: 'reopen' } }]);
    // They go back to the queue, in their order, once they are known to be unused.
    answer(effects, 'readPayers', unused([left]));
    expect(state.queue).toEqual([left]);
  });

  test('learns the gas of a payment from batches alone', () => {
    const before = state.gas.expected();
    const job = randomJob();
    const flight = fly(job);
    answer(look(), 'fetchReceipts', [receiptOf(flight, job)]);
    expect(state.gas.expected()).toBe(before);
  });

  test('that ends the last transaction in flight releases payments that wait for others, and nothing else', () => {
    const [first, second] = [randomJob(), randomJob()];
    const [one, two] = [fly(first), fly(second)];
    feed({ kind: 'submitted', jobs: [randomJob()] });
    expect(state.sender).toBe('window');
    const some = answer(look(), 'fetchReceipts', [receiptOf(one, first), NONE]);
    expect(of(some, 'wake')).toEqual([]);
    const all = answer(look(), 'fetchReceipts', [receiptOf(two, second)]);
    expect(of(all, 'wake')).toEqual([{ kind: 'wake', timer: 'window' }]);
    state.queue.length = 0;
    state.sender = 'idle';
    const third = randomJob();
    const three = fly(third);
    expect(of(answer(look(), 'fetchReceipts', [receiptOf(three, third)]), 'wake')).toEqual([]);
  });
});

describe('late transactions', () => {
  /** The look that finds them late, up to the prices being known; `mined` is what the chain says. */
  function late(mined: number): Effect[] {
    nowMs += 3001;
    const counted = answer(
      answer(look(), 'fetchReceipts', [...state.flights.all().map(() => NONE)]),
      'countTransactions',
      mined,
    );
    return answer(counted, 'readFees', null);
  }

  test('are those that were sent more than three seconds ago: not those that are about to be sent', () => {
    const [sent, noted] = [fly(randomJob()), fly(randomJob())];
    noted.sentMs = null;
    nowMs += 3000;
    expect(answer(look(), 'fetchReceipts', [NONE, NONE])).toEqual([POLL]);
    nowMs += 1;
    expect(of(answer(look(), 'fetchReceipts', [NONE, NONE]), 'countTransactions')).toHaveLength(1);
    expect(state.resend?.late).toEqual([sent]);
  });

  test('whose nonce the chain has used are looked up once more; then their payments go back to the queue, and the others are sent to every provider', () => {
    const [used, waiting] = [randomJob(), randomJob()];
    const [past, stuck] = [fly(used), fly(waiting)];
    const asked = late(4);
    expect(asked).toMatchObject([{ kind: 'fetchReceipts', sent: [{ flight: past }], for: 'late' }]);
    const lost = answer(asked, 'fetchReceipts', [NONE]);
    expect(lost).toMatchObject([{ kind: 'readPayers', jobs: [used], for: { after: 'lost' } }]);
    const others = answer(lost, 'readPayers', unused([used]));
    expect([state.queue, state.flights.all()]).toEqual([[used], [stuck]]);
    expect(of(others, 'readPayers')).toMatchObject([{ jobs: [waiting], for: { after: { replace: stuck } } }]);
    expect(answer(others, 'readPayers', unused([waiting]))).toEqual([
      { kind: 'warn', detail: { late: 2, givenBack: 1, raised: 0 }, message: 'settlements are late' },
      { kind: 'resendEverywhere', raws: [newest(stuck).raw] },
      POLL,
    ]);
    expect([stuck.sentMs, stuck.resends]).toEqual([nowMs, 1]);
  });

  test('that were mined since the look are settled by their receipt, and do not go back to the queue', () => {
    const job = randomJob();
    const flight = fly(job);
    const ended = answer(late(4), 'fetchReceipts', [receiptOf(flight, job)]);
    expect(of(ended, 'end')).toMatchObject([{ job, outcome: { kind: 'settled' } }]);
    expect(answer(ended, 'readPayers', [])).toEqual([
      { kind: 'warn', detail: { late: 1, givenBack: 0, raised: 0 }, message: 'settlements are late' },
      { kind: 'stopListening' },
    ]);
  });

  test('that are late again are each replaced at a higher fee, noted first, for those of their payments that still wait', () => {
    const [paid, open, other] = [randomJob(), randomJob(), randomJob()];
    const flights = [fly(paid, open), fly(other)];
    for (const flight of flights) flight.resends = 1;
    const first = answer(late(3), 'readPayers', []);
    const [used, free] = [
      { used: true, hasCode: false },
      { used: false, hasCode: false },
    ];
    const looked = answer(first, 'readPayers', [used, free]);
    const settled = { kind: 'settled', transaction: new Uint8Array(32), block: 1, paid: 1000n };
    const second = answer(looked, 'lookUp', settled);
    const noted = answer(second, 'readPayers', [free]);
    expect(of(noted, 'note')).toMatchObject([{ flights, for: 'resend' }]);
    expect(flights.map((flight) => newest(flight).jobs)).toEqual([[open], [other]]);
    const sent = answer(noted, 'note', new Set([open.intent.id, other.intent.id]));
    expect(sent).toEqual([
      { kind: 'warn', detail: { late: 2, givenBack: 0, raised: 2 }, message: 'settlements are late' },
      { kind: 'resendEverywhere', raws: flights.map((flight) => newest(flight).raw) },
      POLL,
    ]);
  });

  test('that went back to the queue while their replacement was noted are not sent again', () => {
    const job = randomJob();
    const flight = fly(job);
    flight.resends = 1;
    const noted = answer(answer(late(3), 'readPayers', []), 'readPayers', unused([job]));
    state.flights.close(flight);
    expect(of(answer(noted, 'note', new Set([job.intent.id])), 'resendEverywhere')).toEqual([]);
  });

  test('wait for the next look where the sender has forgotten the nonce, because it is not known which are behind a gap', () => {
    const [past, waiting] = [fly(randomJob()), fly(randomJob())];
    const asked = late(4);
    state.nonces.forget();
    const effects = answer(asked, 'fetchReceipts', [NONE]);
    expect(effects).toMatchObject([{ kind: 'warn', detail: { inFlight: 2 }, message: 'receipts unread' }, POLL]);
    expect([past, waiting].map(state.flights.has)).toEqual([true, true]);
  });

  test.each(['countTransactions', 'readFees'] as const)('stay as they are until the next look where %s fails', (at) => {
    const flight = fly(randomJob());
    nowMs += 3001;
    let effects = answer(look(), 'fetchReceipts', [NONE]);
    if (at === 'readFees') effects = answer(effects, 'countTransactions', 3);
    const effect = of(effects, at)[0] as Ask;
    expect(feed({ kind: 'failed', effect, error: new Error('away') })).toMatchObject([
      { kind: 'warn', message: 'receipts unread' },
      POLL,
    ]);
    expect([state.flights.has(flight), state.sender]).toEqual([true, 'idle']);
  });

  test('whose nonces are all used go back to the queue also where the sender has forgotten the nonce', () => {
    const job = randomJob();
    const flight = fly(job);
    const asked = late(4);
    state.nonces.forget();
    expect(answer(asked, 'fetchReceipts', [NONE])).toMatchObject([{ kind: 'readPayers', jobs: [job] }]);
    expect(state.flights.has(flight)).toBe(false);
  });

  test('are judged by their own count of the chain, not by the one that a round asks for beside it', () => {
    const job = randomJob();
    const flight = fly(job);
    nowMs += 3001;
    const counting = answer(look(), 'fetchReceipts', [NONE]);
    const priced = answer(counting, 'countTransactions', 3);
    feed({ kind: 'countTransactions', effect: { kind: 'countTransactions', for: 'round' }, answer: 4 });
    const sorted = answer(priced, 'readFees', null);
    // Not asked for once more, and so not given back either.
    expect(sorted).toMatchObject([{ kind: 'readPayers', jobs: [], for: { after: 'lost' } }]);
    expect(state.flights.has(flight)).toBe(true);
  });
});
