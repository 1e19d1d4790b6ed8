import { statSync } from 'node:fs';
import { shareOf } from '../../lib/coverage.ts';
import type { Sqlite } from '../../lib/sqlite-file.ts';
import { openCopiedChain } from './database.ts';
import {
  type CollectorStatus,
  type CollectorView,
  type CoverageKind,
  createChainFacts,
  createChainLookups,
  NO_COLLECTOR,
  readCollected,
} from './facts.ts';
import { createFeeSteps, type FeeStepReads } from './fees.ts';
import { type ChainReads, createChainReads } from './reads.ts';

/** How often the file is checked by one stat, so that a new copy is served within seconds. */
const LOOK_MS = 2000;
/** Openings in a row that a replacement may spoil. */
const MOST_OPENS = 10;

interface ChainCopyOptions {
  readonly file: string;
  /** A copy of another chain is refused. */
  readonly chainId: number;
  /** The window whose filled share is reported, as in the collector. */
  readonly backfillHours: number;
  readonly log: { info(detail: object, message: string): void; warn(detail: object, message: string): void };
  readonly lookMs?: number;
}

/** A copy of another service's chain database. When the file is replaced, the new copy is served. */
export interface ChainCopy {
  readonly reads: ChainReads;
  readonly feeSteps: FeeStepReads['feeSteps'];
  /** The state of its collector when the copy was made. */
  readonly collector: CollectorView;
  close(): void;
}

/** The file was replaced while it was opened. */
class Replaced extends Error {}

interface Opened {
  /** Identifies the file among all that are ever at this path. */
  readonly mark: string;
  readonly db: Sqlite;
  readonly reads: ChainReads;
  readonly steps: FeeStepReads;
  readonly status: CollectorStatus;
}

/**
 * Serves from a copy that is replaced as a whole, by a rename. Data, freshness and version change together, in one turn of the event loop.
 * Throws when the first copy cannot be used. A later copy that cannot be used is logged once, and the copy before it is served on.
 * A file that is replaced while it is opened is opened again, up to MOST_OPENS openings in all.
 */
export function openChainCopy({ file, chainId, backfillHours, log, lookMs = LOOK_MS }: ChainCopyOptions): ChainCopy {
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
      const copied = readCopiedChainId(db);
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

/** The same methods. Each call goes to the current copy, so that a stored method never uses a closed connection. */
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

const HOUR_SECONDS = 3600;

/**
 * The collector's state when its database was copied; `version` differs between copies.
 * The head counts as checked when the collector last saw it move. So every reported lag grows from then on, until a newer copy replaces this one.
 */
function readCopiedStatus(db: Sqlite, version: number, backfillHours: number): CollectorStatus {
  const facts = createChainFacts(db);
  const lookups = createChainLookups(db);
  const head = facts.head();
  const full = facts.coverage('full');
  const collected = readCollected({ facts, lookups }, full);
  const blocks = Math.ceil((backfillHours * HOUR_SECONDS) / (collected.blockTimeSeconds ?? 1));
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

/** The chain id of the copied database; null when its collector had not read it yet. */
function readCopiedChainId(db: Sqlite): number | null {
  const facts = createChainFacts(db);
  return (JSON.parse(facts.get('identity') ?? 'null') as { chainId: number } | null)?.chainId ?? null;
}
