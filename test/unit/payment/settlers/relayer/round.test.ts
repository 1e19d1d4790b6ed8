import { encodeFunctionResult, parseAbi } from 'viem';
import { beforeEach, describe, expect, test } from 'vitest';
import { RpcError } from '../../../../../src/chain/rpc/wire.ts';
import { bytesToHex } from '../../../../../src/lib/hex.ts';
import type { Ask, Effect, Event, State } from '../../../../../src/payment/relayer/state.ts';
import { type Job, newest } from '../../../../../src/payment/relayer/transactions.ts';
import { ban } from '../../../../../src/payment/usdc/payer-reads.ts';
import { feedAt, freshState, of } from '../../../../support/usdc/relayer-machine.ts';
import { paidReceipt, randomJob } from '../../../../support/usdc/token-node.ts';

// The sender's round, from the queue to the node: the machine alone, each effect answered by the test.

const abi = parseAbi([
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(uint256) view returns (Result[] memory returnData)',
]);
const REVERTED = { kind: 'failed', reason: 'invalid_exact_evm_transaction_failed' };

let state: State;
let nowMs: number;
beforeEach(() => {
  state = freshState();
  nowMs = 1_800_000_000_000;
});

const feed = (event: Event): Effect[] => feedAt(state, nowMs, event);
function only(effects: readonly Effect[], kind: Ask['kind'], name?: string): Ask {
  const asked = of(effects, kind).filter((effect) => !name || (effect.kind === 'wait' && effect.timer.name === name));
  expect(asked).toHaveLength(1);
  return asked[0] as Ask;
}
const answer = (effects: readonly Effect[], kind: Ask['kind'], got: unknown, name?: string): Effect[] =>
  feed({ kind, effect: only(effects, kind, name), answer: got } as Event);
const fail = (effects: readonly Effect[], kind: Ask['kind'], error: Error): Effect[] =>
  feed({ kind: 'failed', effect: only(effects, kind), error });

/** A round with these, up to what is asked once the prices are known. */
function round(...jobs: Job[]): Effect[] {
  const asked = answer(feed({ kind: 'submitted', jobs }), 'wait', null, 'window');
  return answer(asked, 'readFees', null);
}
/** They are on disk; what follows. */
const noted = (effects: readonly Effect[], jobs: readonly Job[]) =>
  answer(effects, 'note', new Set(jobs.map(({ intent }) => intent.id)));
const free = { used: false, hasCode: false };
const readings = (jobs: readonly Job[], reading = free) => new Map(jobs.map((job) => [job, reading]));
const throughAll = (count: number) => ({
  result: encodeFunctionResult({
    abi,
    functionName: 'aggregate3',
    result: Array.from({ length: count }, () => ({ success: true, returnData: '0x' as const })),
  }),
});
const refusal = (message: string) => ({ error: new RpcError(-32000, message) });

describe('a round', () => {
  test('of one plain payment is noted at once, because a simulation would cost more than it saves', () => {
    const job = randomJob();
    const effects = round(job);
    expect(of(effects, 'tryOut')).toEqual([]);
    const [flight] = state.flights.all();
    expect(noted(effects, [job])).toEqual([{ kind: 'send', flights: [flight], raws: [newest(flight as never).raw] }]);
  });

  test('runs alone: payments that come during it wait in the queue', () => {
    const [first, second] = [randomJob(), randomJob()];
    round(first);
    expect(of(feed({ kind: 'submitted', jobs: [second] }), 'wait')).toEqual([]);
    expect(state.queue).toEqual([second]);
  });

  test('leaves out payments that have ended meanwhile, and does not run where all have', () => {
    const [ended, open] = [randomJob(), randomJob()];
    const waiting = feed({ kind: 'submitted', jobs: [ended, open] });
    ended.ended = true;
    answer(waiting, 'wait', null, 'window');
    expect(state.round?.jobs).toEqual([open]);

    state.sender = 'idle';
    const last = randomJob();
    const again = feed({ kind: 'submitted', jobs: [last] });
    last.ended = true;
    expect(answer(again, 'wait', null, 'window')).toEqual([]);
    expect([state.sender, state.queue]).toEqual(['idle', []]);
  });

  test.each(['countTransactions', 'readFees', 'tryOut', 'note'] as const)(
    'that fails at %s waits half a second, with its payments first in the queue, and is logged',
    (at) => {
      const [ended, open, next] = [randomJob(), randomJob(), randomJob()];
      if (at === 'countTransactions') state.nonces.forget();
      let effects = answer(feed({ kind: 'submitted', jobs: [ended, open] }), 'wait', null, 'window');
      feed({ kind: 'submitted', jobs: [next] });
      if (at === 'tryOut' || at === 'note') effects = answer(effects, 'readFees', null);
      if (at === 'note')
        effects = answer(effects, 'tryOut', { readings: readings([ended, open]), simulated: [throughAll(2)] });
      ended.ended = true;
      const error = new Error('away');
      const failed = fail(effects, at, error);
      expect(failed).toEqual([
        { kind: 'warn', detail: { err: error, waiting: 3 }, message: 'settling waits' },
        { kind: 'wait', ms: 500, timer: { name: 'pause' } },
      ]);
      expect([state.queue, state.flights.size()]).toEqual([[open, next], 0]);
      expect(of(feed({ kind: 'submitted', jobs: [randomJob()] }), 'wait')).toEqual([]);
      expect(of(answer(failed, 'wait', null), 'wait')).toHaveLength(1);
    },
  );

  test('sends nothing where the ledger has no waiting row any more', () => {
    const [job, other] = [randomJob(), randomJob()];
    const effects = answer(round(job, other), 'tryOut', {
      readings: readings([job, other]),
      simulated: [throughAll(2)],
    });
    const again = noted(effects, []);
    expect(of(again, 'end')).toHaveLength(2);
    expect(of(noted(again, []), 'send')).toEqual([]);
    expect([state.sender, state.flights.size()]).toEqual(['idle', 0]);
  });

  test('gives a banned payer’s payment back, unless a node may have it', () => {
    const [unsent, inFlight, shown] = [randomJob(), randomJob(), randomJob({ broadcast: true })];
    inFlight.nonces.add(9);
    for (const { intent } of [unsent, inFlight, shown]) ban(state.bans, bytesToHex(intent.authorization.from), nowMs);
    const effects = round(unsent, inFlight, shown);
    expect(of(effects, 'end')).toEqual([{ kind: 'end', job: unsent, outcome: REVERTED }]);
    expect(only(effects, 'tryOut')).toMatchObject({ plan: { free: [inFlight, shown] } });
  });
});

describe('a payment after its simulation', () => {
  test('waits half a second when it has no reading, and goes on in a smaller group at once when another payment disturbed it', () => {
    const [read, unread] = [randomJob(), randomJob()];
    const effects = answer(round(read, unread), 'tryOut', { readings: readings([read]), simulated: [] });
    expect(state.queue).toEqual([read]);
    expect(only(effects, 'wait', 'queue')).toEqual({
      kind: 'wait',
      ms: 500,
      timer: { name: 'queue', jobs: [unread] },
    });
    // One of them ends meanwhile: only what still waits is queued again.
    unread.ended = true;
    answer(effects, 'wait', null, 'queue');
    expect(state.queue).toEqual([read]);
  });

  test('is looked up before the next round begins when its nonce is used', () => {
    const [good, used] = [randomJob(), randomJob()];
    const trial = {
      readings: new Map([
        [good, free],
        [used, { used: true, hasCode: false }],
      ]),
      simulated: [throughAll(2)],
    };
    const sent = noted(answer(round(good, used), 'tryOut', trial), [good]);
    const examining = answer(sent, 'send', [{ result: '0x1' }]);
    expect(only(examining, 'readPayers')).toMatchObject({ jobs: [used], for: { after: 'examine' } });
    expect(state.sender).toBe('round');
    const looked = answer(examining, 'readPayers', [{ used: true, hasCode: false }]);
    const settled = { kind: 'settled', transaction: new Uint8Array(32), block: 1, paid: 1000n };
    expect(of(answer(looked, 'lookUp', settled), 'end')).toEqual([{ kind: 'end', job: used, outcome: settled }]);
    expect([state.sender, state.round]).toEqual(['idle', null]);
  });

  test('is not looked up when it ended while its payer was read', () => {
    const [used, other] = [randomJob(), randomJob()];
    const trial = { readings: readings([used, other], { used: true, hasCode: false }), simulated: [throughAll(2)] };
    const examining = answer(round(used, other), 'tryOut', trial);
    used.ended = true;
    const effects = answer(examining, 'readPayers', [free, free]);
    expect(of(effects, 'end')).toEqual([{ kind: 'end', job: other, outcome: REVERTED }]);
    expect(of(effects, 'tryToken')).toHaveLength(1);
    expect([state.sender, state.round]).toEqual(['idle', null]);
  });
});

describe('a transaction that is sent', () => {
  const send = (job: Job) => noted(round(job), [job]);

  test('without an answer may have arrived, so that is logged and the sender is free', () => {
    const error = new Error('away');
    expect(of(fail(send(randomJob()), 'send', error), 'warn')).toEqual([
      { kind: 'warn', detail: { err: error, transactions: 1 }, message: 'broadcast unanswered' },
    ]);
    expect([state.sender, state.flights.size()]).toEqual(['idle', 1]);
  });

  test('and refused is logged with the node’s reason, its nonce and its payments, which are then read once more', () => {
    const job = randomJob();
    const refused = answer(send(job), 'send', [refusal('nonce too low')]);
    expect(of(refused, 'warn')).toEqual([
      { kind: 'warn', detail: { reason: 'nonce too low', nonce: 3, payments: 1 }, message: 'broadcast refused' },
    ]);
    const asked = answer(refused, 'wait', null, 'refused');
    const error = new Error('away');
    const sorting = fail(asked, 'fetchReceipts', error);
    expect(of(sorting, 'warn')).toEqual([{ kind: 'warn', detail: { err: error }, message: 'receipts unread' }]);
    expect(state.sender).toBe('round');
    answer(sorting, 'readPayers', [free]);
    expect([state.queue, state.sender, state.flights.size()]).toEqual([[job], 'window', 0]);
  });

  test('and refused because it was mined is judged by its receipt alone: its payment is not queued beside that', () => {
    const job = randomJob();
    const asked = answer(answer(send(job), 'send', [refusal('nonce too low')]), 'wait', null, 'refused');
    const [flight] = state.flights.all();
    const result = { ...paidReceipt([], { status: '0x0' }), transactionHash: newest(flight as never).hash };
    const effects = answer(asked, 'fetchReceipts', [{ result }]);
    expect(of(effects, 'lookUp')).toMatchObject([{ job, for: 'alone' }]);
    expect(only(effects, 'readPayers')).toMatchObject({ jobs: [], for: { after: 'refused' } });
  });
});

describe('a payment', () => {
  const settled = { kind: 'settled', transaction: new Uint8Array(32), block: 1, paid: 1000n } as const;
  const sorting = (job: Job) =>
    feed({
      kind: 'readPayers',
      answer: [null],
      effect: {
        kind: 'readPayers',
        jobs: [job],
        for: { after: 'reopen', unused: [], toLookUp: [], next: 0, asked: 0 },
      },
    });

  test('that both a receipt and the logs show as settled ends once', () => {
    const job = randomJob();
    const effects = [...sorting(job)];
    const again = [...sorting(job)];
    expect(of(answer(effects, 'lookUp', settled), 'end')).toHaveLength(1);
    expect(of(answer(again, 'lookUp', settled), 'end')).toEqual([]);
  });

  test('that has ended is neither queued nor waited for, whatever is reported of it later', () => {
    const job = randomJob();
    const [first, second] = [sorting(job), sorting(job)];
    answer(first, 'lookUp', settled);
    expect(answer(second, 'lookUp', { kind: 'unknown' })).toEqual([]);
    const alone = { kind: 'lookUp', job, atBlock: 1, for: 'alone' } as const;
    expect(feed({ kind: 'lookUp', effect: alone, answer: { kind: 'unknown' } })).toEqual([]);
    expect(state.queue).toEqual([]);
  });

  test('that is sorted beside a round leaves the round to its sender', () => {
    const [inRound, beside] = [randomJob(), randomJob()];
    round(inRound);
    answer(sorting(beside), 'lookUp', { kind: 'open' });
    expect(state.sender).toBe('round');
  });
});

test('a failure of an effect that must always answer is a fault of ours, and is not swallowed', () => {
  const effect = { kind: 'readBalance', job: randomJob(), atBlock: 1 } as const;
  expect(() => feed({ kind: 'failed', effect, error: new Error('a bug') })).toThrow('a bug');
});
