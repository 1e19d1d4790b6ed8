import { describe, expect, test } from 'vitest';
import type { Intent, Outcome } from '../../../../../src/payment/settler.ts';
import {
  type Attempt,
  type AttemptContext,
  createRemoteQueue,
} from '../../../../../src/payment/usdc/facilitator-settler.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';
import { quiet } from '../../../../support/quiet.ts';
import { randomIntent } from '../../../../support/usdc/token-node.ts';

const UNKNOWN: Outcome = { kind: 'unknown' };
const HEARD: Attempt = { outcome: UNKNOWN, isHeard: true };
const UNHEARD: Attempt = { outcome: UNKNOWN, isHeard: false };
const CANNOT_BE_REACHED = 'the settling service cannot be reached';

const intent = (id: string, more: Partial<Intent> = {}): Intent => randomIntent({ id, ...more });

/** A queue whose attempts the test decides; `started` are the payments that were tried, in order. */
function openQueue(attempt: (intent: Intent, context: AttemptContext) => Promise<Attempt>, stallMs = 1e9) {
  const clock = createManualClock(0);
  const started: [id: string, atMs: number][] = [];
  const warned: object[] = [];
  const log = { ...quiet, warn: (detail: object) => void warned.push(detail) };
  const noted = (one: Intent, context: AttemptContext) => {
    started.push([one.id, clock.nowMs()]);
    return attempt(one, context);
  };
  const queue = createRemoteQueue({ clock, log }, noted, () => null, stallMs);
  const settle = (...intents: readonly Intent[]) => Promise.all(queue.settle(intents));
  return { clock, started, warned, queue, settle };
}

/** Questions that the test answers; `waiting` holds one for each that is under way. */
function openQuestions() {
  const waiting: ((attempt?: Attempt) => void)[] = [];
  const ask = (_: Intent, { inTurn }: AttemptContext) =>
    inTurn(() => new Promise<Attempt>((resolve) => waiting.push((attempt = HEARD) => resolve(attempt))));
  return { waiting, ask };
}

/** What promises brought about has had its turn. */
const turn = () => new Promise((next) => setImmediate(next));

describe('the same payment', () => {
  test('is asked for again after pauses that double', async () => {
    const { clock, started, settle } = openQueue(async () => UNHEARD);
    for (let second = 0; second < 20; second++) {
      expect(await settle(intent('same'))).toEqual([UNKNOWN]);
      await clock.advance(1000);
    }
    expect(started.map(([, atMs]) => atMs)).toEqual([0, 1000, 3000, 7000, 15_000]);
  });

  test('waits no longer than five minutes between two attempts, and another one does not wait with it', async () => {
    const { clock, started, settle } = openQueue(async () => HEARD);
    for (let minute = 0; minute < 60; minute++) {
      await settle(intent('same'));
      await clock.advance(60_000);
    }
    const times = started.map(([, atMs]) => atMs);
    const pauses = times.slice(1).map((atMs, at) => atMs - (times[at] ?? 0));
    expect(Math.max(...pauses)).toBe(300_000);
    await settle(intent('other'));
    expect(started.at(-1)?.[0]).toBe('other');
  });

  test('is forgotten at its end, so that it may be asked for at once', async () => {
    const ends: Outcome[] = [UNKNOWN, { kind: 'failed', reason: 'refused' }, UNKNOWN];
    const { clock, started, settle } = openQueue(async () => ({ outcome: ends.shift() ?? UNKNOWN, isHeard: true }));
    await settle(intent('same'));
    await clock.advance(1000);
    expect(await settle(intent('same'))).toEqual([{ kind: 'failed', reason: 'refused' }]);
    await settle(intent('same'));
    expect(started).toHaveLength(3);
    // It began anew: a second's pause.
    await clock.advance(1000);
    await settle(intent('same'));
    expect(started).toHaveLength(4);
  });

  test.each([
    ['is forgotten ten minutes after it could have been asked for again', 601_000, 1000],
    ['is remembered until then', 600_999, 2000],
  ])('whose end was learned elsewhere %s, so that memory does not grow', async (_, afterMs, pauseMs) => {
    const { clock, started, settle } = openQueue(async () => HEARD);
    const attempts = () => started.filter(([id]) => id === 'gone').length;
    await settle(intent('gone'));
    await clock.advance(afterMs);
    await settle(intent('another'));
    await settle(intent('gone'));
    // The pause shows it: a payment that was forgotten has the first pause again.
    await clock.advance(pauseMs - 1);
    await settle(intent('gone'));
    expect(attempts()).toBe(2);
    await clock.advance(1);
    await settle(intent('gone'));
    expect(attempts()).toBe(3);
  });
});

describe('the health of the other side', () => {
  test('is bad for five seconds when three in a row were not heard, and good again at one that was', async () => {
    let isHeard = false;
    const { clock, queue, settle } = openQueue(async () => ({ outcome: UNKNOWN, isHeard }));
    await settle(intent('a'), intent('b'));
    expect(queue.unavailable()).toBeNull();
    await settle(intent('c'));
    expect(queue.unavailable()).toBe(CANNOT_BE_REACHED);
    await clock.advance(4999);
    expect(queue.unavailable()).toBe(CANNOT_BE_REACHED);
    await clock.advance(1);
    expect(queue.unavailable()).toBeNull();
    // A fourth in a row closes it again, because nothing was heard since.
    await settle(intent('d'));
    expect(queue.unavailable()).toBe(CANNOT_BE_REACHED);
    await clock.advance(5000);
    isHeard = true;
    await settle(intent('e'));
    isHeard = false;
    await settle(intent('f'), intent('g'));
    expect(queue.unavailable()).toBeNull();
  });

  test('is not judged by what answers say: a hundred payments that moved nothing close nothing', async () => {
    const { queue, settle } = openQueue(async () => HEARD);
    await settle(...Array.from({ length: 100 }, (_, at) => intent(`unsettled ${at}`)));
    expect(queue.unavailable()).toBeNull();
  });

  test('is not judged by payments that were handed over before, nor by accounts with code', async () => {
    const { queue, settle } = openQueue(async () => UNHEARD);
    for (const more of [{ broadcast: true }, { hasCode: true }])
      await settle(...Array.from({ length: 10 }, (_, at) => intent(`${Object.keys(more)} ${at}`, more)));
    expect(queue.unavailable()).toBeNull();
  });

  test('is not made good by them either', async () => {
    let isHeard = false;
    const { queue, settle } = openQueue(async () => ({ outcome: UNKNOWN, isHeard }));
    await settle(intent('a'), intent('b'));
    isHeard = true;
    await settle(intent('old', { broadcast: true }), intent('wallet', { hasCode: true }));
    isHeard = false;
    await settle(intent('c'));
    expect(queue.unavailable()).toBe(CANNOT_BE_REACHED);
  });

  test('is not judged by an attempt that broke on our side; that is said, and the payment stays open', async () => {
    const { queue, warned, settle } = openQueue(async () => {
      throw new Error('the disk is full');
    });
    expect(await settle(intent('a'), intent('b'), intent('c'), intent('d'))).toEqual(Array(4).fill(UNKNOWN));
    expect([queue.unavailable(), warned.length]).toEqual([null, 4]);
    expect(warned[0]).toMatchObject({ payment: 'a', err: { message: 'the disk is full' } });
  });
});

describe('a question without an answer', () => {
  test('stops the sale of more when it waits for too long, and no longer once it is answered', async () => {
    const { waiting, ask } = openQuestions();
    const { clock, queue } = openQueue(ask, 1000);
    const [outcome] = queue.settle([intent('a')]);
    expect(queue.unavailable()).toBeNull();
    await clock.advance(1000);
    expect(queue.unavailable()).toBeNull();
    await clock.advance(1);
    expect(queue.unavailable()).toBe('the settling service does not answer');
    waiting[0]?.();
    await outcome;
    expect(queue.unavailable()).toBeNull();
  });

  test('stops nothing where it is of a payment that was handed over before, or of an account with code', async () => {
    const { waiting, ask } = openQuestions();
    const { clock, queue } = openQueue(ask, 1000);
    void queue.settle([intent('old', { broadcast: true }), intent('wallet', { hasCode: true })]);
    await turn();
    expect(waiting).toHaveLength(2);
    await clock.advance(10_000);
    expect(queue.unavailable()).toBeNull();
    await queue.stop();
  });

  test('ends as unknown when the service stops, and what comes after that is not asked', async () => {
    const { ask } = openQuestions();
    const { queue, started, warned } = openQueue(ask);
    const [outcome] = queue.settle([intent('a')]);
    await queue.stop();
    expect(await outcome).toEqual(UNKNOWN);
    expect(queue.unavailable()).toBe('the service is stopping');
    expect(await Promise.all(queue.settle([intent('b')]))).toEqual([UNKNOWN]);
    expect([started.map(([id]) => id), warned]).toEqual([['a'], []]);
  });

  test('is waited for by the stop until nothing of it is under way, so that no write comes after it', async () => {
    const writes = Promise.withResolvers<Attempt>();
    const { queue } = openQueue(() => writes.promise);
    const [outcome] = queue.settle([intent('a')]);
    let hasStopped = false;
    const stopping = queue.stop().then(() => {
      hasStopped = true;
    });
    await turn();
    expect(hasStopped).toBe(false);
    writes.resolve(HEARD);
    await stopping;
    expect(await outcome).toEqual(UNKNOWN);
  });
});

describe('places among the questions that are asked at once', () => {
  const many = (count: number, more: Partial<Intent> = {}) =>
    Array.from({ length: count }, (_, at) => intent(`${Object.keys(more)} ${at}`, more));

  test('are 128 for new payments; the next goes when one is answered', async () => {
    const { waiting, ask } = openQuestions();
    const { queue } = openQueue(ask);
    void queue.settle(many(130));
    await turn();
    expect(waiting).toHaveLength(128);
    waiting[0]?.();
    await turn();
    expect(waiting).toHaveLength(129);
    await queue.stop();
  });

  test('are eight others for payments that were handed over before: they take none of a new one’s', async () => {
    const { waiting, ask } = openQuestions();
    const { queue } = openQueue(ask);
    void queue.settle(many(200, { broadcast: true }));
    await turn();
    expect(waiting).toHaveLength(8);
    void queue.settle(many(1));
    await turn();
    expect(waiting).toHaveLength(9);
    await queue.stop();
  });

  test('are held by no more than 4,096 that wait; what is beyond stays open for reconciliation', async () => {
    const { ask } = openQuestions();
    const { queue, warned } = openQueue(ask);
    const ends = queue.settle(many(128 + 4096 + 1));
    expect(await ends.at(-1)).toEqual(UNKNOWN);
    expect(warned).toHaveLength(1);
    await queue.stop();
  });
});

test('whom the settler refuses, the queue refuses', () => {
  const common = { clock: createManualClock(0), log: quiet };
  const [banned, other] = [Buffer.alloc(20, 1), Buffer.alloc(20, 2)];
  const queue = createRemoteQueue(
    common,
    async () => HEARD,
    (payer) => (banned.equals(payer) ? 'banned' : null),
    1,
  );
  expect([queue.refuses?.(banned), queue.refuses?.(other)]).toEqual(['banned', null]);
});
