import type { Sqlite } from '../sqlite/database.ts';
import { type AccountReads, createAccountReads } from './account-reads.ts';
import { type ContractReads, createContractReads } from './contract-reads.ts';
import { createDeployReads, type DeployReads } from './deploy-reads.ts';
import { createExecutionReads, type ExecutionReads } from './execution-reads.ts';
import { createFeeReads, type FeeReads } from './fee-reads.ts';
import { createFxReads, type FxReads } from './fx-reads.ts';
import { createHourReads, type HourReads } from './hour-reads.ts';
import { type CostReads, createCostReads } from './operation-costs.ts';
import { createPoolReads, type PoolReads } from './pool-reads.ts';
import { createProbeReads, type ProbeReads } from './probe-store.ts';
import { createProbeTallies, type ProbeTallies } from './probe-tally.ts';
import { createTokenReads, type TokenReads } from './token-reads.ts';

/** Everything that endpoints read from the chain database: synchronous, plain rows, amounts as bigint. */
export interface ChainReads
  extends AccountReads,
    ContractReads,
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
  /** Differs after every write of the collector. An answer is valid until then. */
  version(): number;
}

/**
 * Prepared reads over the connection through which the collector writes.
 */
export function createChainReads(db: Sqlite): ChainReads {
  const changes = db.prepare('SELECT total_changes()').pluck();
  const version = () => changes.get() as number;
  return {
    version,
    ...createAccountReads(db),
    ...createContractReads(db),
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
