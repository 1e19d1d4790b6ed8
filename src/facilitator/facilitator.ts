import type { Logger } from 'pino';
import { Unavailable } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { OpenWindows } from '../lib/limits/windows.ts';
import type { LightningStore } from '../store/ports/proofs.ts';
import { createCounts } from './counts.ts';
import { describeFacilitator } from './descriptor.ts';
import { createLimits, type FacilitatorLimits } from './limits.ts';
import { createSettle, networkOf, type SettleAnswer } from './settle.ts';

interface FacilitatorOptions {
  readonly store: Pick<LightningStore, 'claim' | 'facilitatorCounts' | 'clientCount'>;
  readonly clock: Clock;
  readonly config: FacilitatorLimits;
  /** Where calls per minute are counted; in this process's memory by default. */
  readonly windows?: OpenWindows | undefined;
  readonly publicOrigin: string;
  /** Our node's key in hex; null while there is none. The facilitator works without one. */
  readonly ownPayTo: () => string | null;
  readonly log: Logger;
}

/** Settles Lightning proofs for any seller. It does not depend on a transport. */
export interface Facilitator {
  /** Counts a client's call and returns a refusal when a limit is reached. For transports that can ask before they read the body. */
  admit(client: string): Promise<SettleAnswer | null>;
  /** Settles a call that was admitted. */
  settleAdmitted(body: unknown, client: string): Promise<SettleAnswer>;
  /** Admits and settles. `client` is the key under which the call is counted. Every body gets an answer. */
  settle(body: unknown, client: string): Promise<SettleAnswer>;
  /** Throws Unavailable while the ledger cannot be read. */
  descriptor(): Promise<ReturnType<typeof describeFacilitator>>;
}

/** Makes the facilitator over the store that our own Lightning routes use too. */
export function createFacilitator(options: FacilitatorOptions): Facilitator {
  const { store, clock, config, windows, publicOrigin, ownPayTo, log } = options;
  const { dailyCap, maxTimeoutSeconds } = config;
  const counts = createCounts({ store, clock, dailyCap, ownPayTo });
  const limits = createLimits({ store, clock, counts, limits: config, windows });
  const { admit, settle } = createSettle({ store, clock, limits, counts, maxTimeoutSeconds, log });
  return {
    admit,
    settleAdmitted: settle,
    settle: async (body, client) => {
      const refused = await admit(client);
      if (!refused) return settle(body, client);
      return { ...refused, body: { ...refused.body, network: networkOf(body) } };
    },
    async descriptor() {
      const figures = await counts.withOwnClaims().catch((error) => {
        log.error({ err: error }, 'the figures of the facilitator cannot be read');
        throw new Unavailable('replay_store_unavailable', 'The store of claims does not answer; try again later.');
      });
      return describeFacilitator(publicOrigin, config, figures);
    },
  };
}
