import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CourseName, DiskJob } from '../../support/disk/disk-program.ts';
import { type CutDisk, cutDisks, diskFolder, runDiskJob } from '../../support/disk/disk-runs.ts';
import { diskMissing } from '../../support/disk/faulty-disk.ts';
import { migrationFaults } from '../../support/disk/migration-script.ts';
import type { Survives } from '../../support/disk/power-loss.ts';
import { faultsOf, openScripted, refill } from '../../support/disk/scripted-ledger.ts';
import { seed, seededRandom } from '../../support/random.ts';

const IS_SLOW = Boolean(process.env.SLOW);
const random = seededRandom('power loss');
/** Ways to lose what no sync has covered: all of it, nothing, and random sets of its sectors. */
const SOME: readonly Survives[] = Array.from({ length: IS_SLOW ? 10 : 1 }, () => () => random() < 0.5);
const WAYS: readonly Survives[] = [() => false, () => true, ...SOME];
/** The quick lane cuts the power after every n-th write or sync. Each start of a migration takes long. */
const STRIDES = IS_SLOW
  ? { sale: 1, voucher: 1, claim: 1, migration: 1, creation: 2 }
  : { sale: 15, voucher: 20, claim: 15, migration: 14, creation: 48 };
/** After a failed sync. Each of a sale's fifteen syncs fails once, so each run cuts the power less often. */
const FAILED_SYNC_STRIDE = IS_SLOW ? 6 : 15;

let work: string;
beforeEach(() => {
  work = diskFolder();
});
afterEach(() => rmSync(work, { recursive: true, force: true }));

/** Cuts the power after writes and syncs of a course, and says what is wrong with what is left. `most`: it ends after so many faults. */
async function cutThePower(course: CourseName, more: Partial<DiskJob> = {}, most = Number.POSITIVE_INFINITY) {
  const { states, reports } = await runDiskJob({ work, course, kind: 'record', ...more });
  const stride = more.faults ? FAILED_SYNC_STRIDE : STRIDES[course];
  const [left, seen] = [join(work, 'left'), new Set<string>()];
  const [first, faults] = [Math.floor(random() * stride), [] as string[]];
  for (const disk of cutDisks(work, WAYS, (record) => record % stride === first)) {
    if (faults.length >= most || !isNew(disk, seen)) continue;
    refill(left, disk.files);
    const found = await foundOn(course, left, disk, states).catch((error: Error) => [`lost: ${error.message}`]);
    faults.push(...found.map((one) => `record ${disk.record}: ${one}`));
  }
  return { faults, disks: seen.size, hits: reports[0]?.points ?? 0 };
}

/** What is wrong with a ledger after the cut. Rejects for one that cannot be opened. */
async function foundOn(
  course: CourseName,
  left: string,
  { acknowledged }: CutDisk,
  states: Parameters<typeof faultsOf>[3],
): Promise<string[]> {
  if (course === 'migration' || course === 'creation') return migrationFaults(left, acknowledged > 0, states);
  return faultsOf(course, openScripted(left), acknowledged, states);
}

/** Whether no earlier disk had the same content after the same acknowledgements. */
function isNew({ files, acknowledged }: CutDisk, seen: Set<string>): boolean {
  const hash = createHash('sha256').update(String(acknowledged));
  for (const [name, bytes] of files) hash.update(`\n${name} ${bytes.length}\n`).update(bytes);
  const key = hash.digest('hex');
  if (seen.has(key)) return false;
  seen.add(key);
  return true;
}

describe.skipIf(diskMissing !== null)(
  `a power cut that loses, tears and reorders what no sync has covered, seed ${seed}`,
  () => {
    test.each(['sale', 'voucher', 'claim', 'migration', 'creation'] as const)(
      'during a %s loses nothing that was acknowledged, and the next start can finish it',
      async (course) => {
        const { faults, disks } = await cutThePower(course);
        process.stdout.write(`${course}: ${disks} disks after a power cut\n`);
        expect(faults).toEqual([]);
        expect(disks).toBeGreaterThan(10);
      },
    );

    test('after a failed sync loses nothing that the ended or the next process has acknowledged', async () => {
      // A sale makes fifteen syncs.
      for (let skip = Math.floor(random() * (IS_SLOW ? 1 : 8)); skip < 15; skip += IS_SLOW ? 1 : 8) {
        rmSync(work, { recursive: true, force: true });
        const { faults, hits } = await cutThePower('sale', { faults: [{ ...FAILED_SYNC, skip }] });
        expect([hits, faults], `sync ${skip}`).toEqual([1, []]);
      }
    });

    test('is found to lose acknowledged steps when commits wait for no disk', async () => {
      const { faults } = await cutThePower('sale', { isSynced: false }, 5);
      expect(faults.join('\n')).toContain('lost: ');
    });
  },
);

const FAILED_SYNC = { on: ['sync'], error: 'EIO', times: 1, first: 0, stride: 1 } as const;
