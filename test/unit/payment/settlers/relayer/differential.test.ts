import { expect, test } from 'vitest';
import { createMachineRelayer } from '../../../../../src/payment/settlers/relayer/machine-relayer.ts';
import { createRelayer } from '../../../../../src/payment/settlers/relayer/relayer.ts';
import { type Journal, runWorld } from '../../../../support/usdc/world/run-world.ts';

// The relayer as a state machine beside the one before it, in the same seeded worlds. SEED=<seed> runs one world alone; SLOW=1 runs more.

const [BLOCKS, WORLDS] = [10, process.env.SLOW ? 300 : 20];
const seedsOf = (block: number): string[] =>
  process.env.SEED ? [process.env.SEED] : Array.from({ length: WORLDS }, (_, at) => `world-${block * WORLDS + at}`);

const journals: Journal[] = [];

test.each(Array.from({ length: process.env.SEED ? 1 : BLOCKS }, (_, block) => block))(
  'block %i of seeded worlds sees the same transactions, notes, outcomes, bans and costs at the same times from both relayers',
  async (block) => {
    for (const seed of seedsOf(block)) {
      const [before, after] = [await runWorld(seed, createRelayer), await runWorld(seed, createMachineRelayer)];
      expect({ seed, ...after }).toEqual({ seed, ...before });
      expect([after.isStopped, after.journal.ended.length]).toEqual([true, after.submitted]);
      journals.push(after.journal);
    }
  },
  600_000,
);

test.skipIf(process.env.SEED)(
  'the worlds hold what settling can meet: each warning, each way of sending and each outcome',
  () => {
    const warnings = new Set(journals.flatMap((journal) => journal.warnings.map(({ message }) => message)));
    expect([...warnings].sort()).toEqual([
      'a batch left some unpaid',
      'a receipt was not understood',
      'broadcast refused',
      'broadcast unanswered',
      'receipts unread',
      'settlements are late',
      'settling waits',
    ]);
    expect(new Set(journals.flatMap(({ handed }) => handed.map(({ way }) => way)))).toEqual(
      new Set(['send', 'everywhere']),
    );
    const outcomes = journals.flatMap(({ ended }) => ended.map(({ outcome: { kind } }) => kind));
    expect(new Set(outcomes)).toEqual(new Set(['settled', 'failed', 'unknown']));
    expect(journals.some(({ glances }) => glances.some(({ refused }) => refused.length > 0))).toBe(true);
  },
);
