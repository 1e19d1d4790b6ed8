import type { Sqlite } from './database.ts';
import { createDeployReads, type DeployReads } from './deploy-reads.ts';
import { createFeeReads, type FeeReads } from './fee-reads.ts';
import { createFxReads, type FxReads } from './fx-reads.ts';
import { createHourReads, type HourReads } from './hour-reads.ts';
import { type CostReads, createCostReads } from './operation-costs.ts';
import { createProbeReads, type ProbeReads } from './probe-store.ts';
import { createTokenReads, type TokenReads } from './token-reads.ts';

/** Everything that endpoints read from the chain database: synchronous, plain rows, amounts as bigint. */
export interface ChainReads extends CostReads, DeployReads, FeeReads, FxReads, HourReads, ProbeReads, TokenReads {
  /** Differs after every write through this connection: an answer is good until then. */
  version(): number;
}

/** Prepared reads over the connection that the collector writes through, which is what makes `version` see its writes. */
export function createChainReads(db: Sqlite): ChainReads {
  const changes = db.prepare('SELECT total_changes()').pluck();
  return {
    version: () => changes.get() as number,
    ...createCostReads(db),
    ...createDeployReads(db),
    ...createFeeReads(db),
    ...createFxReads(db),
    ...createHourReads(db),
    ...createProbeReads(db),
    ...createTokenReads(db),
  };
}
