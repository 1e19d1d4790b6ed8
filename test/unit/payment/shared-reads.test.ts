import { expect, test } from 'vitest';
import { createSharedReads } from '../../../src/payment/usdc/shared-reads.ts';
import { createManualClock } from '../../support/manual-clock.ts';
import { seed, seededRandom } from '../../support/random.ts';

const STAYS = new AbortController().signal;

/** Reads whose requests the test ends; `asked` holds the questions of each. */
function startReads(most = 5) {
  const clock = createManualClock(0);
  const asked: (readonly number[])[] = [];
  const open: { answer(answers?: (string | Error)[]): void; fail(error: Error): void }[] = [];
  const ask = (questions: readonly number[]) => {
    asked.push(questions);
    return new Promise<(string | Error)[]>((resolve, fail) => {
      open.push({ answer: (answers = questions.map((q) => `answer ${q}`)) => resolve(answers), fail });
    });
  };
  const read = createSharedReads<number, string>({ ask, gatherMs: 4, pauseMs: 10, longestWaitMs: 100, most, clock });
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

test('a failed request fails for all who wait for it, and for nobody else', async () => {
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

test('where all have left nothing is asked, and whoever comes next does not wait longer', async () => {
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
  // Nobody is asked for twice.
  expect(new Set(asked.flat()).size).toBe(asked.flat().length);
});
