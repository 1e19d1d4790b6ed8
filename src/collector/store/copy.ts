import { statSync } from 'node:fs';
import type { Log } from '../../lib/common.ts';
import { shareOf } from '../../lib/coverage.ts';
import type { Sqlite } from '../../lib/sqlite-file.ts';
import { openCopiedChain } from './database.ts';
import {
  type CollectorStatus,
  type CollectorView,
  type CoverageKind,
  createChainFacts,
  createChainLookups,
  HOUR,
  NO_COLLECTOR,
  readCollected,
} from './facts.ts';
import { createFeeSteps, type FeeStepReads } from './fees.ts';
import { type ChainReads, createChainReads } from './reads.ts';

// Serves from a read-only copy of another service's chain database. A stat every two seconds shows whether the file was
// replaced. A later copy that cannot be used is logged and not served.

const LOOK_MS = 2000;
/** In a row, while each is spoiled by a replacement. */
const MOST_OPENS = 10;

interface ChainCopyOptions {
  readonly file: string;
  /** A copy of another chain is refused. */
  readonly chainId: number;
  readonly backfillHours: number;
  readonly lookMs?: number;
}

export interface ChainCopy {
  readonly reads: ChainReads;
  readonly feeSteps: FeeStepReads['feeSteps'];
  /** As it was when the copy was made. */
  readonly collector: CollectorView;
  close(): void;
}

class Replaced extends Error {}

interface Opened {
  /** Tells the file from all others at this path. */
  readonly mark: string;
  readonly db: Sqlite;
  readonly reads: ChainReads;
  readonly steps: FeeStepReads;
  readonly status: CollectorStatus;
}

/** Data, freshness and version change together. Throws when the first copy cannot be used. */
export function openChainCopy(log: Pick<Log, 'info' | 'warn'>, options: ChainCopyOptions): ChainCopy {
  const { file, chainId, backfillHours, lookMs = LOOK_MS } = options;
  let version = 1;
  let current = openUnreplaced();
  let refused = '';

  function openUnreplaced(): Opened {
    for (let opens = 1; ; opens++) {
      try {
        return open();
      } catch (error) {
        if (!(error instanceof Replaced) || opens === MOST_OPENS) throw error;
      }
    }
  }

  function open(): Opened {
    const mark = markOf(file);
    const db = openCopiedChain(file);
    try {
      // It is unknown which of the two is open.
      if (markOf(file) !== mark) throw new Replaced(`${file} is being replaced`);
      const copied = createChainFacts(db).identity()?.chainId ?? null;
      if (copied !== null && copied !== chainId) throw new Error(`${file} is of chain ${copied}, not ${chainId}`);
      const status = readCopiedStatus(db, version, backfillHours);
      return { mark, db, reads: createChainReads(db), steps: createFeeSteps(db), status };
    } catch (error) {
      db.close();
      throw error;
    }
  }

  function look(): void {
    try {
      if (markOf(file) === current.mark) return;
      version += 1;
      const next = openUnreplaced();
      current.db.close();
      current = next;
      refused = '';
      log.info({ collected: next.status.collected?.number ?? null }, 'a newer copy of the chain database is served');
    } catch (err) {
      const reason = String(err);
      if (reason !== refused)
        log.warn({ err }, 'the copy of the chain database cannot be used; the earlier copy is still served');
      refused = reason;
    }
  }

  const timer = setInterval(look, lookMs);
  timer.unref();
  return {
    reads: { ...following(() => current.reads), version: () => current.status.version },
    feeSteps: (from, stepSeconds) => current.steps.feeSteps(from, stepSeconds),
    collector: { status: () => current.status },
    close: () => {
      clearInterval(timer);
      current.db.close();
    },
  };
}

/** A stored method never uses a closed connection. */
function following<T extends object>(current: () => T): T {
  const methods = Object.keys(current()).map((name) => [
    name,
    (...args: unknown[]) => (Reflect.get(current(), name) as (...given: unknown[]) => unknown)(...args),
  ]);
  return Object.fromEntries(methods) as T;
}

function markOf(file: string): string {
  const { dev, ino, size, mtimeNs } = statSync(file, { bigint: true });
  return [dev, ino, size, mtimeNs].join(':');
}

/** The head counts as checked when it last moved, so that each lag grows until a newer copy. */
function readCopiedStatus(db: Sqlite, version: number, backfillHours: number): CollectorStatus {
  const facts = createChainFacts(db);
  const lookups = createChainLookups(db);
  const head = facts.head();
  const full = facts.coverage('full');
  const collected = readCollected({ facts, lookups }, full);
  const blocks = Math.ceil((backfillHours * HOUR) / (collected.blockTimeSeconds ?? 1));
  const to = full.at(-1)?.to ?? 0;
  const share = (kind: CoverageKind) => shareOf(facts.coverage(kind), { from: Math.max(1, to - blocks + 1), to }, 0);
  return {
    ...NO_COLLECTOR.status(),
    ...collected,
    head: head && { number: head.number, hash: head.hash, at: head.at },
    headAdvancedMs: head?.advancedMs ?? null,
    headCheckedMs: head?.advancedMs ?? null,
    backfill: {
      share: share('full'),
      blocksPerSecond: 0,
      secondsLeft: share('full') === 1 ? 0 : null,
      feesShare: share('fees'),
      logsShare: share('logs'),
    },
    version,
  };
}
