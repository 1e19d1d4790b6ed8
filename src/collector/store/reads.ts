import type { Sqlite } from '../../lib/sqlite-file.ts';
import { type AccountReads, createAccountReads, createDeployReads, type DeployReads } from './accounts.ts';
import { type CostReads, createCostReads } from './costs.ts';
import { createFeeReads, createHourReads, type FeeReads, type HourReads } from './fees.ts';
import { createProbeReads, createProbeTallies, type ProbeReads, type ProbeTallies } from './probes.ts';
import { createTokenReads, type TokenReads } from './token-events.ts';
import {
  createExecutionReads,
  createFxReads,
  createPoolReads,
  type ExecutionReads,
  type FxReads,
  type PoolReads,
} from './trades.ts';

/** What endpoints read from the chain database: synchronous, plain rows, amounts as bigint. */
export interface ChainReads
  extends AccountReads,
    CostReads,
    DeployReads,
    ExecutionReads,
    FeeReads,
    FxReads,
    HourReads,
    PoolReads,
    ProbeReads,
    ProbeTallies,
    TokenReads {
  /** Differs after every write. An answer is valid until then. */
  version(): number;
}

/** Over the collector's own connection, or a copy. */
export function createChainReads(db: Sqlite): ChainReads {
  const changes = db.prepare('SELECT total_changes()').pluck();
  const version = () => changes.get() as number;
  return {
    version,
    ...createAccountReads(db),
    ...createCostReads(db),
    ...createDeployReads(db),
    ...createExecutionReads(db),
    ...createFeeReads(db, version),
    ...createFxReads(db),
    ...createHourReads(db, version),
    ...createPoolReads(db),
    ...createProbeReads(db),
    ...createProbeTallies(db),
    ...createTokenReads(db),
  };
}
