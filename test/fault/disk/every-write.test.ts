import { rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CourseName, DiskReport } from '../../support/disk/disk-program.ts';
import { diskFolder, runDiskJob } from '../../support/disk/disk-runs.ts';
import { type DiskFault, diskMissing } from '../../support/disk/faulty-disk.ts';
import { documented } from '../../support/disk/outcome-table.ts';
import { seed, seededRandom } from '../../support/random.ts';

if (diskMissing !== null && process.env.REQUIRE_CC === '1') throw new Error(`REQUIRE_CC=1, but ${diskMissing}`);

const random = seededRandom('every write');
/** In the slow lane a fault meets every write; else every n-th, from a random one on. It meets every sync and cut. */
const STRIDES = process.env.SLOW ? { any: 1, some: 1 } : { any: 59, some: 9 };

/** How many operations lie between two that meet a fault. The faults of some writes only find fewer. */
function strideOf({ on, part }: DiskFault, course: CourseName): number {
  if (on.includes('sync') || on.includes('truncate')) return 1;
  const isGrowing = on.includes('growing') && course !== 'creation';
  return isGrowing || part !== undefined ? STRIDES.some : STRIDES.any;
}

/** The faults of the tables in docs/disks.md, by their words. Each meets the n-th operation of its kind. */
const FAULTS: Record<string, DiskFault> = {
  'one write fails (`EIO`)': { on: ['write'], error: 'EIO', times: 1 },
  'one write is cut short (`EIO`)': { on: ['write'], error: 'EIO', how: 'half', times: 2 },
  'every write fails from then on (`EIO`)': { on: ['write'], error: 'EIO' },
  'the disk is full from then on (`ENOSPC`)': { on: ['growing'], error: 'ENOSPC' },
  'one sync fails (`EIO`)': { on: ['sync'], error: 'EIO', times: 1 },
  'one cut of a file fails (`EIO`)': { on: ['truncate'], error: 'EIO', times: 1 },
  'the file fails, its log does not (`EIO`)': { on: ['write'], error: 'EIO', part: 'ledger.db$' },
};
const NOTHING_TO_MEND = 'nothing to mend';
/** Only these fail a step for certain. The others may meet what SQLite does again later. */
const FOR_CERTAIN = ['every write fails from then on (`EIO`)', 'the disk is full from then on (`ENOSPC`)'];

let work: string;
beforeEach(() => {
  work = diskFolder();
});
afterEach(() => rmSync(work, { recursive: true, force: true }));

async function meetAll(course: CourseName): Promise<[string, DiskReport][]> {
  const faults = Object.values(FAULTS).map((fault) => {
    const stride = strideOf(fault, course);
    return { ...fault, first: Math.floor(random() * stride), stride };
  });
  const { reports } = await runDiskJob({ work, course, kind: 'each', faults });
  const summary = reports.map(({ points }) => points).join(' + ');
  process.stdout.write(`${course}: faults at ${summary} operations\n`);
  return Object.keys(FAULTS).map((name, at) => [name, reports[at] as DiskReport]);
}

/** A report in the words of the table: what is lost, and how the ledger goes on. */
function outcomeOf({ points, unnoticed, wentOn, restarted, faults }: DiskReport): string[] {
  const goesOn = restarted === 0 ? 'in the same process' : wentOn === 0 ? 'after a new start' : 'both';
  return [faults.length === 0 ? 'nothing' : faults.join('; '), unnoticed === points ? NOTHING_TO_MEND : goesOn];
}

describe.skipIf(diskMissing !== null)(`a fault at each operation on the ledger’s files, seed ${seed}`, () => {
  test.each(['sale', 'voucher', 'claim'] as const)(
    'of a %s: nothing acknowledged is lost, nothing is done in part or sold twice, and it can be finished',
    async (course) => {
      for (const [name, report] of await meetAll(course)) {
        const [goesOn] = documented('A sale or a start', name);
        // Of few operations, none may be one whose fault SQLite notices.
        const expected = process.env.SLOW || report.unnoticed < report.points ? goesOn : NOTHING_TO_MEND;
        expect(outcomeOf(report), name).toEqual(['nothing', expected]);
        expect(report.points, name).toBeGreaterThan(0);
        // While the disk fails, a check says that the ledger cannot be written.
        if (FOR_CERTAIN.includes(name)) expect(report.said, name).toBe(report.points - report.unnoticed);
      }
    },
  );

  test('a sync that fails in one process stops the writes of the others, which rely on the same log', async () => {
    // SQLite itself makes the first sync, of the log's header.
    const fault = {
      on: ['sync'],
      error: 'EIO',
      part: 'ledger.db-wal$',
      skip: 1,
      times: 1,
      first: 0,
      stride: 1,
    } as const;
    const { reports } = await runDiskJob({ work, course: 'sale', kind: 'shared', faults: [fault] });
    expect(reports).toEqual([expect.objectContaining({ codes: ['EIO'], faults: [] })]);
  });

  test.each(['migration', 'creation'] as const)('of a %s: the next start finishes it', async (course) => {
    for (const [name, { points, faults }] of await meetAll(course)) {
      expect(faults, name).toEqual([]);
      expect(points, name).toBeGreaterThan(0);
    }
  });
});
