import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { keccak256 } from 'viem';
import { describe, expect, test } from 'vitest';
import { createRelayer } from '../../../../../src/payment/relayer/relayer.ts';
import { digestOf } from '../../../../support/usdc/world/digest.ts';
import { type Journal, runWorld } from '../../../../support/usdc/world/run-world.ts';

// The relayer in seeded worlds in virtual time: faults of the provider, hostile payers, third parties, a disk that fails. recorded.json holds a
// digest of what it did in each. The first ones were made by the relayer before the state machine, so that the same digest means the same
// transactions, notes, outcomes, bans, costs and times. Who changes its behaviour on purpose makes them anew with RECORD=1 and says why.
// SEED=<seed> runs one world alone.

const RECORDED = join(import.meta.dirname, 'recorded.json');
const recorded: Record<string, string> = JSON.parse(readFileSync(RECORDED, 'utf8'));
const isWhole = process.env.SLOW || process.env.RECORD || process.env.MUTATE;
/** Every third world. The slow lane and mutants meet all. The last test holds that these have everything that may happen. */
const chosen = Object.keys(recorded).filter((_, at) => isWhole || at % 3 === 0);
const seeds = process.env.SEED ? [process.env.SEED] : chosen;
const BLOCK = 20;
const blocks = Array.from({ length: Math.ceil(seeds.length / BLOCK) }, (_, at) =>
  seeds.slice(at * BLOCK, at * BLOCK + BLOCK),
);

const journals: Journal[] = [];
const made: Record<string, string> = {};

/** What no relayer may do, whatever the world does. */
function findings({ journal, submitted, isStopped, listeners }: Awaited<ReturnType<typeof runWorld>>): string[] {
  const found: string[] = [];
  if (!isStopped || listeners > 0) found.push('it does not stop');
  if (journal.ended.length !== submitted) found.push(`${journal.ended.length} of ${submitted} payments ended`);
  if (new Set(journal.ended.map(({ id }) => id)).size !== submitted) found.push('a payment ended twice');
  const notedMs = new Map<string, number>();
  for (const { atMs, hashes } of journal.noted)
    for (const hash of hashes) notedMs.set(hash, Math.min(atMs, notedMs.get(hash) ?? atMs));
  for (const { atMs, raw } of journal.handed) {
    const hash = keccak256(raw as `0x${string}`);
    if ((notedMs.get(hash) ?? Number.POSITIVE_INFINITY) > atMs) found.push(`${hash} was sent before it was noted`);
  }
  for (const { id, outcome } of journal.ended)
    if (outcome.kind === 'settled' && outcome.paid !== 1000n) found.push(`${id} was paid ${outcome.paid}`);
  return found;
}

// The last test looks at the worlds of those before it.
describe('the seeded worlds', { shuffle: false }, () => {
  test.each(blocks.map((block) => [block[0] ?? '', block] as const))(
    'from %s on: every payment ends once, nothing is sent before it is noted, and everything is as it was recorded',
    async (_, block) => {
      for (const seed of block) {
        const world = await runWorld(seed, createRelayer);
        journals.push(world.journal);
        made[seed] = digestOf(world.journal);
        expect({ seed, findings: findings(world) }).toEqual({ seed, findings: [] });
        if (!process.env.RECORD)
          expect({ seed, digest: made[seed] }).toEqual({ seed, digest: recorded[seed] ?? made[seed] });
      }
    },
  );

  test.skipIf(process.env.SEED)('contain each warning, each way of sending and each outcome of settling', () => {
    if (process.env.RECORD) writeFileSync(RECORDED, `${JSON.stringify(made, null, 2)}\n`);
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
  });
});
