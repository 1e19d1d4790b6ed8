import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lightningProof } from '../../../scripts/lib/lightning/lightning-proofs.ts';
import type { Config } from '../../../src/config.ts';
import { createFacilitator } from '../../../src/facilitator/facilitator.ts';
import { createLogger } from '../../../src/lib/common.ts';
import { captureLog } from '../../http/harness.ts';
import { openTestLedger, storesOf } from '../ledger/fresh-ledger.ts';

/** The default limits. */
export const LIMITS: Config['facilitator'] = { perMinute: 60, dailyCap: 20_000, maxTimeoutSeconds: 3600 };

/** A clock that stands still until a test moves it. */
export function createClockAt(startMs: number) {
  const clock = { now: startMs, nowMs: () => clock.now, sleep: async () => {} };
  return clock;
}

interface Options {
  readonly startMs: number;
  /** A ledger's file to open again. By default a new one, which `close` removes. */
  readonly file?: string;
  readonly limits?: Partial<Config['facilitator']>;
  readonly ownPayTo?: string;
}

/** Opens the facilitator over a real ledger, with its clock, its store and its log lines. */
export function openFacilitator({ startMs, file, limits = {}, ownPayTo }: Options) {
  const folder = file === undefined ? mkdtempSync(join(tmpdir(), 'percall-facilitator-')) : null;
  const db = openTestLedger(file ?? join(folder ?? '', 'ledger.db'));
  const store = storesOf(db).lightning;
  const clock = createClockAt(startMs);
  const { lines, destination } = captureLog();
  const facilitator = createFacilitator({
    store,
    clock,
    config: { ...LIMITS, ...limits },
    publicOrigin: 'https://api.example',
    ownPayTo: () => ownPayTo ?? null,
    log: createLogger('debug', destination),
  });
  return {
    facilitator,
    store,
    clock,
    db,
    lines,
    file: db.name,
    close: () => {
      db.close();
      if (folder) rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The key of a payee's node. */
export const payeeKey = (n: number): Buffer => Buffer.concat([Buffer.alloc(28, 7), Buffer.of(0, 0, n >> 8, n & 255)]);

/** Makes payees known: on each of the three days before the clock's, two clients claim for each of them. The day's cap must be 20 of each or more. */
export async function makeKnown({ facilitator, clock }: OpenFacilitator, payees: number): Promise<void> {
  const now = clock.now;
  for (const daysAgo of [3, 2, 1]) {
    clock.now = now - daysAgo * 86_400_000;
    for (let n = 0; n < payees; n++) {
      const { body } = lightningProof({ createdAt: clock.now / 1000, privateKey: payeeKey(n) });
      const answer = await facilitator.settleAdmitted(body, `client ${n} ${daysAgo % 2}`);
      if (!answer.body.success) throw new Error(JSON.stringify(answer));
    }
  }
  clock.now = now;
}

export type OpenFacilitator = ReturnType<typeof openFacilitator>;
