import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { createSharedReads } from '../../../src/lib/limits/queue.ts';
import { createManualClock } from '../../support/manual-clock.ts';
import { seed, seededRandom } from '../../support/random.ts';

const STAYS = new AbortController().signal;

type Queue = Parameters<typeof createSharedReads>[3];

/** Reads whose requests the test ends; `asked` holds the questions of each. */
function startReads(most = 5, { queue, ready }: { queue?: Queue; ready?: () => Promise<void> } = {}) {
  const clock = createManualClock(0);
  const asked: (readonly number[])[] = [];
  const open: { answer(answers?: (string | Error)[]): void; fail(error: Error): void }[] = [];
  const ask = (questions: readonly number[]) => {
    asked.push(questions);
    return new Promise<(string | Error)[]>((resolve, fail) => {
      open.push({ answer: (answers = questions.map((q) => `answer ${q}`)) => resolve(answers), fail });
    });
  };
  const read = createSharedReads<number, string>(clock, ask, most, queue, ready);
  return { clock, asked, open, read };
}

const ends = async (reads: readonly Promise<string>[]): Promise<unknown[]> =>
  (await Promise.allSettled(reads)).map((end) => (end.status === 'fulfilled' ? end.value : end.reason.message));

test('questions of the same moment share a request, and each gets its own answer', async () => {
  const { clock, asked, open, read } = startReads();
  const first = read(1, STAYS);
  await clock.advance(3);
  const second = read(2, STAYS);
  expect(asked).toEqual([]);
  await clock.advance(1);
  expect(asked).toEqual([[1, 2]]);
  open[0]?.answer();
  expect(await ends([first, second])).toEqual(['answer 1', 'answer 2']);
});

test('a request takes so many and no more, and goes out as soon as it is full', async () => {
  const { clock, asked, open, read } = startReads(5);
  const reads = Array.from({ length: 12 }, (_, at) => read(at, STAYS));
  expect(asked).toEqual([
    [0, 1, 2, 3, 4],
    [5, 6, 7, 8, 9],
  ]);
  await clock.advance(100);
  expect(asked[2]).toEqual([10, 11]);
  for (const one of open) one.answer();
  expect(await ends(reads)).toEqual(Array.from({ length: 12 }, (_, at) => `answer ${at}`));
});

test('while one is under way the others wait for its end and a moment more, and go together', async () => {
  const { clock, asked, open, read } = startReads();
  const reads = [read(1, STAYS)];
  await clock.advance(4);
  reads.push(read(2, STAYS));
  await clock.advance(50);
  reads.push(read(3, STAYS));
  expect(asked).toEqual([[1]]);
  open[0]?.answer();
  await clock.advance(0);
  await reads[0];
  await clock.advance(5);
  reads.push(read(4, STAYS));
  await clock.advance(4);
  expect(asked).toEqual([[1]]);
  await clock.advance(1);
  expect(asked).toEqual([[1], [2, 3, 4]]);
  open[1]?.answer();
  expect(await ends(reads)).toEqual(['answer 1', 'answer 2', 'answer 3', 'answer 4']);
});

test('one that hangs holds the others up for a tenth of a second, not for ever', async () => {
  const { clock, asked, open, read } = startReads();
  const hanging = read(1, STAYS);
  await clock.advance(4);
  const next = read(2, STAYS);
  await clock.advance(99);
  expect(asked).toEqual([[1]]);
  await clock.advance(1);
  expect(asked).toEqual([[1], [2]]);
  open[1]?.answer();
  expect(await next).toBe('answer 2');
  open[0]?.fail(new Error('timed out'));
  expect(await ends([hanging])).toEqual(['timed out']);
});

test('a failed request fails for all callers that wait for it, and for no other caller', async () => {
  const { clock, open, read } = startReads();
  const failing = [read(1, STAYS), read(2, STAYS)];
  await clock.advance(4);
  const later = read(3, STAYS);
  open[0]?.fail(new Error('the chain is away'));
  expect(await ends(failing)).toEqual(['the chain is away', 'the chain is away']);
  await clock.advance(10);
  open[1]?.answer();
  expect(await later).toBe('answer 3');
});

test('an error in place of an answer fails one question alone; so does a missing answer', async () => {
  const { clock, open, read } = startReads();
  const reads = [read(1, STAYS), read(2, STAYS), read(3, STAYS)];
  await clock.advance(4);
  open[0]?.answer(['good', new Error('only this one')]);
  expect(await ends(reads)).toEqual(['good', 'only this one', 'a question without answer']);
});

test('a caller who leaves ends its own waiting alone: before the request it is not asked for, after it the others are answered', async () => {
  const { clock, asked, open, read } = startReads();
  const [early, late] = [new AbortController(), new AbortController()];
  const never = AbortSignal.abort(new Error('gone before'));
  const gone = ends([read(1, early.signal), read(2, late.signal), read(4, never)]);
  const stays = read(3, STAYS);
  early.abort(new Error('left early'));
  await clock.advance(4);
  expect(asked).toEqual([[2, 3]]);
  late.abort(new Error('left late'));
  expect(await gone).toEqual(['left early', 'left late', 'gone before']);
  open[0]?.answer();
  expect(await stays).toBe('answer 3');
});

test('when all callers have left no request is sent, and the next caller does not wait longer', async () => {
  const { clock, asked, open, read } = startReads();
  const leaver = new AbortController();
  const gone = read(1, leaver.signal);
  leaver.abort(new Error('left'));
  expect(await ends([gone])).toEqual(['left']);
  await clock.advance(10);
  expect(asked).toEqual([]);
  const next = read(2, STAYS);
  await clock.advance(4);
  expect(asked).toEqual([[2]]);
  open[0]?.answer();
  expect(await next).toBe('answer 2');
});

test(`under random arrivals, leavers and failures everybody hears exactly what is theirs (SEED=${seed})`, async () => {
  const random = seededRandom('shared-reads');
  const { clock, asked, open, read } = startReads(7);
  const expected: string[] = [];
  const heard: Promise<string>[] = [];
  const failed = new Set<number>();
  let ended = 0;
  const endOne = () => {
    if (ended === open.length) return;
    const questions = asked[ended] ?? [];
    const fails = random() < 0.2;
    if (fails) for (const question of questions) failed.add(question);
    if (fails) open[ended]?.fail(new Error('failed'));
    else open[ended]?.answer();
    ended++;
  };
  for (let round = 0; round < 2000; round++) {
    const leaver = new AbortController();
    heard.push(read(round, leaver.signal));
    expected.push(`answer ${round}`);
    heard.at(-1)?.catch(() => {});
    if (random() < 0.1) {
      leaver.abort(new Error('left'));
      expected[round] = 'left';
    }
    if (random() < 0.4) await clock.advance(Math.floor(random() * 8));
    if (random() < 0.3) endOne();
  }
  await clock.advance(200);
  while (ended < open.length) {
    endOne();
    await clock.advance(200);
  }
  for (const question of failed) if (expected[question] !== 'left') expected[question] = 'failed';
  expect(await ends(heard)).toEqual(expected);
  expect(Math.max(...asked.map(({ length }) => length))).toBe(7);
  // No payer is asked for twice.
  expect(new Set(asked.flat()).size).toBe(asked.flat().length);
});

/** Promises whose results no test awaits, such as those of questions that a test leaves open. */
const left = <T>(reads: readonly Promise<T>[]): void => {
  for (const read of reads) read.catch(() => {});
};

/** What promises brought about has had its turn. */
const turn = () => new Promise((next) => setImmediate(next));

describe('where not all questions fit into a request', () => {
  test('clients take turns: one with many questions gets no more places than one with a single one', async () => {
    const { asked, read } = startReads(4);
    const hold = held();
    const slow = startReads(4, { ready: hold.ready });
    left([0, 1, 2, 3, 4, 5].map((at) => slow.read(at, STAYS, '192.0.2.1')));
    left([slow.read(10, STAYS, '192.0.2.2'), slow.read(20, STAYS, '192.0.2.3')]);
    expect(slow.asked).toEqual([]);
    hold.release();
    await turn();
    expect(slow.asked).toEqual([
      [0, 10, 20, 1],
      [2, 3, 4, 5],
    ]);
    // Without others a client has all of them.
    left([0, 1, 2, 3].map((at) => read(at, STAYS, '192.0.2.1')));
    expect(asked).toEqual([[0, 1, 2, 3]]);
  });

  test('what is left goes in the next one, at once where it fills it, else after a while', async () => {
    const hold = held();
    const { clock, asked, read } = startReads(3, { ready: hold.ready });
    left([0, 1, 2, 3, 4, 5, 6].map((at) => read(at, STAYS)));
    hold.release();
    await turn();
    expect(asked).toEqual([
      [0, 1, 2],
      [3, 4, 5],
    ]);
    await clock.advance(99);
    expect(asked).toHaveLength(2);
    await clock.advance(1);
    expect(asked[2]).toEqual([6]);
  });
});

/** A permission to ask that the test gives: once released, at once. */
function held() {
  let asks = 0;
  let isOpen = false;
  let waiting: { resolve(): void; reject(error: unknown): void }[] = [];
  return {
    ready: (): Promise<void> => {
      asks += 1;
      if (isOpen) return Promise.resolve();
      return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
    },
    release: () => {
      isOpen = true;
      for (const { resolve } of waiting) resolve();
      waiting = [];
    },
    refuse: (error: Error) => {
      for (const { reject } of waiting) reject(error);
      waiting = [];
    },
    asks: () => asks,
  };
}

describe('requests that need a permission', () => {
  test('wait for it, and what comes meanwhile goes with them', async () => {
    const hold = held();
    const { clock, asked, read } = startReads(5, { ready: hold.ready });
    left([read(1, STAYS)]);
    await clock.advance(4);
    expect([asked, hold.asks()]).toEqual([[], 1]);
    left([read(2, STAYS)]);
    await clock.advance(200);
    left([read(3, STAYS)]);
    await clock.advance(200);
    // One permission is asked for at a time.
    expect([asked, hold.asks()]).toEqual([[], 1]);
    hold.release();
    await turn();
    expect(asked).toEqual([[1, 2, 3]]);
  });

  test('are asked for one by one', async () => {
    const hold = held();
    hold.release();
    const { asked, read } = startReads(2, { ready: hold.ready });
    left([read(1, STAYS), read(2, STAYS), read(3, STAYS), read(4, STAYS)]);
    await turn();
    expect([asked, hold.asks()]).toEqual([
      [
        [1, 2],
        [3, 4],
      ],
      2,
    ]);
  });

  test('that are refused fail all who wait, and the next ones ask anew', async () => {
    const hold = held();
    const { clock, asked, open, read } = startReads(5, { ready: hold.ready });
    const refused = [read(1, STAYS), read(2, STAYS)];
    await clock.advance(4);
    hold.refuse(new Error('the service is stopping'));
    expect(await ends(refused)).toEqual(Array(2).fill('the service is stopping'));
    hold.release();
    const next = read(3, STAYS);
    await clock.advance(4);
    expect([asked, hold.asks()]).toEqual([[[3]], 2]);
    open[0]?.answer();
    expect(await next).toBe('answer 3');
  });

  test('whose callers have all left ask nothing', async () => {
    const hold = held();
    const { clock, asked, read } = startReads(5, { ready: hold.ready });
    const leaver = new AbortController();
    const gone = read(1, leaver.signal);
    await clock.advance(4);
    leaver.abort(new Error('left'));
    expect(await ends([gone])).toEqual(['left']);
    hold.release();
    await turn();
    expect(asked).toEqual([]);
  });
});

describe('a queue with places', () => {
  const busy = () => new Error('busy');
  const queueOf = (places: number, waitMs = 1000) => ({ queue: { places: () => places, waitMs, refusal: busy } });

  test('refuses a client that would hold more than is left for all others, at once', async () => {
    const { clock, asked, read } = startReads(50, queueOf(4));
    const greedy = [1, 2, 3].map((at) => read(at, STAYS, '192.0.2.1'));
    left(greedy);
    expect(await ends(greedy.slice(2))).toEqual(['busy']);
    const others = [read(4, STAYS, '192.0.2.2'), read(5, STAYS, '192.0.2.3'), read(6, STAYS, '192.0.2.4')];
    left(others);
    // The four places are taken.
    expect(await ends(others.slice(2))).toEqual(['busy']);
    await clock.advance(4);
    expect(asked).toEqual([[1, 2, 4, 5]]);
  });

  test('gives a place back with the answer, with a failure, and when a caller leaves', async () => {
    const { clock, open, read } = startReads(50, queueOf(2));
    const ask = (at: number, signal = STAYS) => read(at, signal, '192.0.2.1');
    const first = ask(1);
    expect(await ends([ask(2)])).toEqual(['busy']);
    await clock.advance(4);
    open[0]?.answer();
    expect(await first).toBe('answer 1');
    const second = ask(3);
    await clock.advance(4);
    open[1]?.fail(new Error('away'));
    expect(await ends([second])).toEqual(['away']);
    const leaver = new AbortController();
    const third = ask(4, leaver.signal);
    leaver.abort(new Error('left'));
    expect(await ends([third])).toEqual(['left']);
    const fourth = ask(5);
    await clock.advance(4);
    open[2]?.answer();
    expect(await fourth).toBe('answer 5');
  });

  test('takes no place for a caller who is gone already', async () => {
    const { clock, open, read } = startReads(50, queueOf(2));
    const gone = AbortSignal.abort(new Error('gone before'));
    expect(await ends([read(1, gone, 'a')])).toEqual(['gone before']);
    const next = read(2, STAYS, 'a');
    await clock.advance(4);
    open[0]?.answer();
    expect(await next).toBe('answer 2');
  });

  test('may have more and fewer places with time', async () => {
    let places = 2;
    const { clock, open, read } = startReads(50, { queue: { places: () => places, waitMs: 1000, refusal: busy } });
    left([read(1, STAYS, 'a')]);
    expect(await ends([read(2, STAYS, 'a')])).toEqual(['busy']);
    places = 10;
    const more = [read(3, STAYS, 'a'), read(4, STAYS, 'b')];
    await clock.advance(4);
    open[0]?.answer();
    expect(await ends(more)).toEqual(['answer 3', 'answer 4']);
    places = 0;
    expect(await ends([read(5, STAYS, 'c')])).toEqual(['busy']);
  });

  test('refuses what has waited for too long, and only that', async () => {
    const hold = held();
    const { clock, asked, open, read } = startReads(50, { ...queueOf(100, 1000), ready: hold.ready });
    const old = [read(1, STAYS, 'a'), read(2, STAYS, 'b')];
    left(old);
    await clock.advance(500);
    const younger = read(3, STAYS, 'c');
    await clock.advance(499);
    let isOver = false;
    void Promise.allSettled(old).then(() => {
      isOver = true;
    });
    await turn();
    expect(isOver).toBe(false);
    await clock.advance(1);
    expect(await ends(old)).toEqual(['busy', 'busy']);
    await clock.advance(499);
    hold.release();
    await turn();
    expect(asked).toEqual([[3]]);
    open[0]?.answer();
    expect(await younger).toBe('answer 3');
  });

  test('refuses at once while no request may go for those that have waited too long, and no longer', async () => {
    const hold = held();
    const { clock, asked, open, read } = startReads(50, { ...queueOf(100, 1000), ready: hold.ready });
    const old = read(1, STAYS, 'a');
    left([old]);
    await clock.advance(1000);
    expect(await ends([old, read(2, STAYS, 'b')])).toEqual(['busy', 'busy']);
    hold.release();
    await turn();
    const next = read(3, STAYS, 'b');
    await clock.advance(4);
    expect(asked).toEqual([[3]]);
    open[0]?.answer();
    expect(await next).toBe('answer 3');
  });

  test('lets a preferred question wait, and no other, while no request may go for those that have waited too long', async () => {
    const hold = held();
    const places = queueOf(100, 1000).queue;
    const { clock, asked, read } = startReads(50, { queue: { ...places, preferredFrom: 2 }, ready: hold.ready });
    const old = read(1, STAYS, 'a');
    left([old]);
    await clock.advance(1000);
    expect(await ends([old, read(2, STAYS, 'b', 1)])).toEqual(['busy', 'busy']);
    left([read(3, STAYS, 'c', 2)]);
    hold.release();
    await turn();
    expect(asked).toEqual([[3]]);
  });

  test('takes those first that are to come first, in turns, and fills up with the others', async () => {
    const hold = held();
    const { clock, asked, read } = startReads(3, { ...queueOf(100), ready: hold.ready });
    left([read(1, STAYS, 'a'), read(2, STAYS, 'b')]);
    left([read(3, STAYS, 'c', 1), read(4, STAYS, 'c', 1)]);
    await clock.advance(4);
    hold.release();
    await turn();
    expect(asked).toEqual([[3, 4, 1]]);
    left([read(5, STAYS, 'c', 1), read(6, STAYS, 'c', 1), read(7, STAYS, 'c', 1), read(8, STAYS, 'd', 1)]);
    await clock.advance(100);
    hold.release();
    await turn();
    expect(asked[1]).toEqual([5, 8, 6]);
  });

  test('takes those of a higher precedence before all of a lower one', async () => {
    const hold = held();
    const { clock, asked, read } = startReads(3, { ...queueOf(100), ready: hold.ready });
    left([read(1, STAYS, 'a'), read(2, STAYS, 'b', 1), read(3, STAYS, 'c', 3), read(4, STAYS, 'd', 2)]);
    await clock.advance(4);
    hold.release();
    await turn();
    expect(asked).toEqual([[3, 4, 2]]);
  });

  describe('and a request that failed only because no more may go now', () => {
    const limited = () => new Error('limited');
    const patient = (waitMs = 1000) => {
      const isRefusal = (error: unknown) => error instanceof Error && error.message === 'limited';
      return { queue: { places: () => 100, waitMs, refusal: busy, isRefusal } };
    };

    test('makes it again for all who wait, and for those that came meanwhile', async () => {
      const { clock, asked, open, read } = startReads(50, patient());
      const first = [read(1, STAYS, 'a'), read(2, STAYS, 'b')];
      await clock.advance(4);
      const later = read(3, STAYS, 'c');
      open[0]?.fail(limited());
      await turn();
      await clock.advance(10);
      expect(asked).toEqual([
        [1, 2],
        [1, 2, 3],
      ]);
      open[1]?.answer();
      expect(await ends([...first, later])).toEqual(['answer 1', 'answer 2', 'answer 3']);
    });

    test('makes it again while another request hangs', async () => {
      const { clock, asked, open, read } = startReads(1, patient());
      const reads = [read(1, STAYS, 'a'), read(2, STAYS, 'b')];
      left(reads);
      expect(asked).toEqual([[1], [2]]);
      open[1]?.fail(limited());
      await turn();
      await clock.advance(100);
      expect(asked[2]).toEqual([2]);
    });

    test('asks nothing for a caller who left meanwhile', async () => {
      const { clock, asked, open, read } = startReads(50, patient());
      const leaver = new AbortController();
      const reads = [read(1, leaver.signal, 'a'), read(2, STAYS, 'b')];
      left(reads);
      await clock.advance(4);
      leaver.abort(new Error('left'));
      open[0]?.fail(limited());
      await turn();
      await clock.advance(10);
      expect(asked[1]).toEqual([2]);
    });

    test('refuses those that have waited for too long since they first asked, and asks for the others', async () => {
      const { clock, asked, open, read } = startReads(50, patient(500));
      const reads = [read(1, STAYS, 'a')];
      left(reads);
      await clock.advance(400);
      const young = read(2, STAYS, 'b');
      left([young]);
      await clock.advance(99);
      open[0]?.fail(limited());
      await turn();
      await clock.advance(1);
      expect(await ends(reads)).toEqual(['busy']);
      await clock.advance(9);
      expect(asked).toEqual([[1], [2]]);
    });

    test('still fails all who wait with any other fault', async () => {
      const { clock, open, read } = startReads(50, patient());
      const reads = [read(1, STAYS, 'a'), read(2, STAYS, 'b')];
      await clock.advance(4);
      open[0]?.fail(new Error('away'));
      expect(await ends(reads)).toEqual(['away', 'away']);
    });
  });

  test('goes on looking at how long others wait, also after nothing has waited for a while', async () => {
    const hold = held();
    const { clock, read } = startReads(50, { ...queueOf(100, 1000), ready: hold.ready });
    const first = read(1, STAYS, 'a');
    await clock.advance(600);
    const second = read(2, STAYS, 'b');
    left([first, second]);
    await clock.advance(400);
    expect(await ends([first])).toEqual(['busy']);
    await clock.advance(600);
    expect(await ends([second])).toEqual(['busy']);
    expect(clock.pendingSleeps()).toEqual([]);
    const third = read(3, STAYS, 'a');
    left([third]);
    await clock.advance(1000);
    expect(await ends([third])).toEqual(['busy']);
  });

  test('does not refuse what has been asked for, however long the answer takes', async () => {
    const { clock, open, read } = startReads(50, queueOf(100, 1000));
    const slow = read(1, STAYS, 'a');
    await clock.advance(5000);
    open[0]?.answer();
    expect(await slow).toBe('answer 1');
  });
});

test('an alarm that was overtaken sends nothing: the next question waits its own time', async () => {
  const { clock, asked, open, read } = startReads(2);
  const reads = [read(1, STAYS)];
  await clock.advance(1);
  reads.push(read(2, STAYS));
  expect(asked).toEqual([[1, 2]]);
  reads.push(read(3, STAYS));
  // The first one's moment would be over now.
  await clock.advance(50);
  expect(asked).toEqual([[1, 2]]);
  open[0]?.answer();
  await ends(reads.slice(0, 2));
  await clock.advance(10);
  expect(asked).toEqual([[1, 2], [3]]);
  open[1]?.answer();
  expect(await ends(reads)).toEqual(['answer 1', 'answer 2', 'answer 3']);
});

test('an answer does not hurry those that wait while another request is under way', async () => {
  const { clock, asked, open, read } = startReads(1);
  const reads = [read(1, STAYS), read(2, STAYS)];
  expect(asked).toEqual([[1], [2]]);
  const slow = startReads(2);
  const first = [slow.read(1, STAYS), slow.read(2, STAYS), slow.read(3, STAYS), slow.read(4, STAYS)];
  expect(slow.asked).toEqual([
    [1, 2],
    [3, 4],
  ]);
  const waits = slow.read(5, STAYS);
  slow.open[0]?.answer();
  await ends(first.slice(0, 2));
  await slow.clock.advance(99);
  expect(slow.asked).toHaveLength(2);
  await slow.clock.advance(1);
  expect(slow.asked[2]).toEqual([5]);
  for (const one of [...open, ...slow.open]) one.answer();
  expect(await ends([...reads, ...first, waits])).toHaveLength(7);
  await clock.advance(0);
});

test('nothing is left behind on a caller’s signal once it has its answer', async () => {
  const { clock, open, read } = startReads();
  const caller = new AbortController();
  const reading = read(1, caller.signal);
  await clock.advance(4);
  open[0]?.answer();
  await reading;
  expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
});

test('a question that comes first is asked once, however much room is left for the others', async () => {
  const { clock, asked, open, read } = startReads(5);
  const reads = [read(1, STAYS, 'a'), read(2, STAYS, 'b', 1)];
  await clock.advance(4);
  expect(asked).toEqual([[2, 1]]);
  open[0]?.answer();
  expect(await ends(reads)).toEqual(['answer 1', 'answer 2']);
});

describe('a request that may not go yet', () => {
  /** Requests wait until the test lets them go, or fails them. */
  function held() {
    const gates: PromiseWithResolvers<void>[] = [];
    const ready = () => {
      const gate = Promise.withResolvers<void>();
      gates.push(gate);
      return gate.promise;
    };
    const queue = { places: () => 1000, waitMs: 500, refusal: () => new Error('refused') };
    return { ...startReads(2, { ready, queue }), gates };
  }

  test('is asked for once, however many more questions come', async () => {
    const { clock, asked, gates, open, read } = held();
    const reads = Array.from({ length: 6 }, (_, at) => read(at, STAYS, `client ${at}`));
    expect(gates).toHaveLength(1);
    const turn = () => new Promise((next) => setImmediate(next));
    gates[0]?.resolve();
    await turn();
    expect(gates).toHaveLength(2);
    // The first ones have their answer: what waits would go soon, were it not held.
    open[0]?.answer();
    await turn();
    await clock.advance(10);
    expect(gates).toHaveLength(2);
    for (let at = 1; at < 3; at++) {
      gates[at]?.resolve();
      await turn();
    }
    expect(asked).toHaveLength(3);
    for (const one of open) one.answer();
    expect(await ends(reads)).toHaveLength(6);
  });

  test('and then failed holds up no question that comes after that', async () => {
    const { clock, gates, open, read } = held();
    const failing = [read(1, STAYS), read(2, STAYS)];
    gates[0]?.reject(new Error('the chain is away'));
    expect(await ends(failing)).toEqual(['the chain is away', 'the chain is away']);
    const next = [read(3, STAYS), read(4, STAYS)];
    gates[1]?.resolve();
    await clock.advance(0);
    await new Promise((turn) => setImmediate(turn));
    open[0]?.answer();
    expect(await ends(next)).toEqual(['answer 3', 'answer 4']);
  });

  test('refuses no question at once where the oldest question left by itself', async () => {
    const { clock, gates, open, read } = held();
    const caller = new AbortController();
    const left = read(1, caller.signal);
    await clock.advance(4);
    await clock.advance(300);
    const stays = read(2, STAYS);
    caller.abort(new Error('left'));
    expect(await ends([left])).toEqual(['left']);
    // The first one's time is over, the second one's is not.
    await clock.advance(196);
    const third = read(3, STAYS);
    gates[0]?.resolve();
    await new Promise((turn) => setImmediate(turn));
    for (const one of open) one.answer();
    expect(await ends([stays, third])).toEqual(['answer 2', 'answer 3']);
  });

  test('is waited for no longer than the first time, after a while without questions too', async () => {
    const { clock, gates, open, read } = held();
    const first = [read(1, STAYS), read(2, STAYS)];
    gates[0]?.resolve();
    await new Promise((turn) => setImmediate(turn));
    open[0]?.answer();
    await ends(first);
    await clock.advance(10_000);
    const late = ends([read(3, STAYS), read(4, STAYS)]);
    await clock.advance(500);
    expect(await late).toEqual(['refused', 'refused']);
  });
});
