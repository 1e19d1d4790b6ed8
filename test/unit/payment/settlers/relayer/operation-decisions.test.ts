import { beforeEach, describe, expect, test } from 'vitest';
import { RpcError } from '../../../../../src/chain/rpc/wire.ts';
import type { Effect, Turn } from '../../../../../src/payment/relayer/state.ts';
import {
  newOperationJob,
  type OperationJob,
  type Unconfirmed,
} from '../../../../../src/payment/relayer/transactions.ts';
import {
  endMined,
  lookUpLost,
  resume,
  takeOperation,
  takeOperationFound,
  takeOperationTrial,
} from '../../../../../src/payment/relayer/watching.ts';
import { freshState, prices } from '../../../../support/usdc/relayer-machine.ts';
import { paidReceipt, randomJob, randomOperation } from '../../../../support/usdc/token-node.ts';

// One decision at a time, by the state before it and the effects after it.

const NOW_MS = 1_800_000_000_000;
/** An operation that is queued for longer goes before payments, and one that cannot be read about for longer ends. In milliseconds. */
const LONGEST_MS = 5000;
const NO_EVENT = 'the transaction was mined without the event';

let turn: Turn & { effects: Effect[] };
beforeEach(() => {
  const state = freshState();
  turn = { state, now: { nowMs: NOW_MS, prices, isCareful: false }, effects: [] };
});

/** A job that has been queued for this long. No receipt holds its event. */
function job(forMs = 0, broadcast = false): OperationJob {
  return newOperationJob(randomOperation({ broadcast, readReceipt: () => null }), NOW_MS - forMs);
}
const lookUp = (of: OperationJob, why: Unconfirmed): Effect => ({ kind: 'lookUpOperation', job: of, for: why });
const ended = (of: OperationJob, outcome: object) => ({ kind: 'endOperation', job: of, outcome });
const refusal = { error: new RpcError(3, 'execution reverted: no') };
/** A nonce of ours that is not used up yet. */
const OPEN_NONCE = 3;

describe('an operation in the queue', () => {
  test('goes before payments only when it has waited for more than five seconds', () => {
    turn.state.queue.push(randomJob());
    const [exact, longer] = [job(LONGEST_MS), job(LONGEST_MS + 1)];
    turn.state.operations.push(exact);
    expect(takeOperation(turn)).toBeNull();
    turn.state.operations.splice(0, 1, longer);
    expect(takeOperation(turn)).toBe(longer);
    expect([turn.state.operations, takeOperation(turn)]).toEqual([[], null]);
  });

  test('stays there while another one is in flight', () => {
    turn.state.flights.openOperation(job(), prices);
    turn.state.operations.push(job(LONGEST_MS + 1));
    expect(takeOperation(turn)).toBeNull();
    expect(turn.state.operations).toHaveLength(1);
  });
});

describe('an operation that a simulation refuses', () => {
  test('fails when no node has seen it, and is looked up when one may have', () => {
    const [unsent, sent, sentBefore] = [job(), job(), job(0, true)];
    sent.nonces.add(OPEN_NONCE);
    for (const each of [unsent, sent, sentBefore]) takeOperationTrial(turn, each, refusal);
    const reason = refusal.error.message;
    expect(turn.effects).toEqual([
      ended(unsent, { kind: 'failed', reason }),
      lookUp(sent, { after: 'refused', reason }),
      lookUp(sentBefore, { after: 'refused', reason }),
    ]);
  });
});

describe('an operation is looked up', () => {
  test('when its transaction was mined without its event, and the reason says whether it reverted', () => {
    const [mined, reverted] = [job(), job()];
    endMined(turn, mined, paidReceipt([]));
    endMined(turn, reverted, paidReceipt([], { status: '0x0' }));
    expect(turn.effects).toEqual([
      lookUp(mined, { after: 'mined', reason: NO_EVENT }),
      lookUp(reverted, { after: 'mined', reason: 'the transaction reverted' }),
    ]);
  });

  test('when its flight was given back, unless it has ended', () => {
    const [open, over] = [job(), job()];
    over.ended = true;
    lookUpLost(
      turn,
      [open, over].map((each) => turn.state.flights.openOperation(each, prices)),
    );
    expect(turn.effects).toEqual([lookUp(open, { after: 'lost' })]);
  });

  test('again after a pause, or queued where nothing was unconfirmed, and neither once it has ended or the service stops', () => {
    const [unconfirmed, waiting, over] = [job(), job(), job()];
    over.ended = true;
    resume(turn, unconfirmed, { after: 'lost' });
    resume(turn, waiting, null);
    resume(turn, over, null);
    expect([turn.effects, turn.state.operations]).toEqual([[lookUp(unconfirmed, { after: 'lost' })], [waiting]]);
    turn.state.stopping = true;
    resume(turn, unconfirmed, null);
    expect(turn.state.operations).toEqual([waiting]);
  });
});

describe('what the chain shows of an operation', () => {
  test('queues one whose flight was given back, for a simulation first', () => {
    const lost = job();
    takeOperationFound(turn, lost, { after: 'lost' }, null);
    expect([turn.effects, turn.state.operations, lost.mustSend]).toEqual([[], [lost], false]);
  });

  test.each([
    ['is broadcast and refused', 'refused', true, null, true],
    ['is broadcast and was mined in vain', 'mined', true, null, false],
    ['is refused while a transaction with it may still be mined', 'refused', false, OPEN_NONCE, true],
    ['was mined in vain, and another transaction may still be mined', 'mined', false, OPEN_NONCE, true],
    ['is refused, and nothing of ours can be mined', 'refused', false, null, false],
  ] as const)('of one that %s decides whether it is sent again', (_, after, broadcast, nonce, again) => {
    const unconfirmed = job(0, broadcast);
    if (nonce !== null) unconfirmed.nonces.add(nonce);
    takeOperationFound(turn, unconfirmed, { after, reason: 'why' }, null);
    const failed = ended(unconfirmed, { kind: 'failed', reason: 'why' });
    expect([turn.effects, turn.state.operations]).toEqual(again ? [[], [unconfirmed]] : [[failed], []]);
    expect(unconfirmed.mustSend).toBe(again);
  });

  test('no longer matters once it has ended', () => {
    const over = job();
    over.ended = true;
    takeOperationFound(turn, over, { after: 'lost' }, null);
    expect([turn.effects, turn.state.operations]).toEqual([[], []]);
  });

  test('cannot be read for five seconds before it ends as unknown', () => {
    const [exact, longer] = [job(), job()];
    exact.unresolvedMs = NOW_MS - LONGEST_MS;
    longer.unresolvedMs = NOW_MS - LONGEST_MS - 1;
    const why = { after: 'lost' } as const;
    for (const each of [exact, longer]) takeOperationFound(turn, each, why, 'unreadable');
    expect(turn.effects).toEqual([
      { kind: 'wait', ms: 500, timer: { name: 'operation', job: exact, why } },
      ended(longer, { kind: 'unknown' }),
    ]);
  });
});
