import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Sqlite } from '../../src/lib/sqlite-file.ts';
import { openLedgerDatabase } from '../../src/store/db/sqlite.ts';
import type { Round } from '../support/ledger/ledger-racer.ts';

const RACER = new URL('../support/ledger/ledger-racer.ts', import.meta.url);
const ROUNDS = 100;
const TRIES = 64;

let folder: string;
let db: Sqlite;
let racers: readonly ChildProcess[];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'percall-race-'));
  const file = join(folder, 'ledger.db');
  db = openLedgerDatabase(file);
  racers = ['a', 'b'].map((name) => fork(RACER, [file, name]));
  await Promise.all(racers.map((racer) => once(racer, 'message')));
});
afterEach(async () => {
  const gone = racers.map((racer) => racer.exitCode ?? once(racer, 'exit'));
  for (const racer of racers) racer.kill();
  await Promise.all(gone);
  db.close();
  rmSync(folder, { recursive: true, force: true });
});

test.each(['authorization', 'identifier'] as const)(
  `of ${2 * TRIES} reservations of one %s from two processes exactly one wins, ${ROUNDS} times`,
  async (about) => {
    const sums: number[] = [];
    const winners = new Set<number>();
    for (let number = 0; number < ROUNDS; number++) {
      const round: Round = { number, tries: TRIES, about };
      // The processes get the command first in turn, so that neither is always faster.
      const order = number % 2 === 0 ? racers : racers.toReversed();
      const wins = await Promise.all(
        order.map(async (racer) => {
          racer.send(round);
          const [won] = (await once(racer, 'message')) as [number];
          if (won > 0) winners.add(racers.indexOf(racer));
          return won;
        }),
      );
      sums.push(wins.reduce((sum, won) => sum + won, 0));
    }
    expect(sums).toEqual(Array(ROUNDS).fill(1));
    expect(db.prepare('SELECT count(*) FROM usdc_payments').pluck().get()).toBe(ROUNDS);
    // Both processes must have won at least once; otherwise there was no race.
    expect(winners.size).toBe(2);
  },
);
