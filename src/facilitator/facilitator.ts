import type { Logger } from 'pino';
import { Unavailable } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { OpenWindows } from '../lib/limits/minute-windows.ts';
import type { LightningStore } from '../store/ports/proofs.ts';
import { createCounts } from './counts.ts';
import { describeFacilitator } from './descriptor.ts';
import { createLimits, type FacilitatorLimits } from './limits.ts';
import { createSettle, networkOf, type SettleAnswer } from './settle.ts';

interface FacilitatorOptions {
  readonly store: Pick<LightningStore, 'claim' | 'facilitatorCounts' | 'clientCount'>;
  readonly clock: Clock;
  readonly config: FacilitatorLimits;
  /** Where calls a minute are counted; this process's memory by default. */
  readonly windows?: OpenWindows | undefined;
  readonly publicOrigin: string;
  /** Our node's key in hex, null while there is none: the facilitator works without one. */
  readonly ownPayTo: () => string | null;
  readonly log: Logger;
}

/** Settles Lightning proofs for any seller; knows nothing of the transport. */
export interface Facilitator {
  /** Counts a client's call and refuses it where a limit is reached; for transports that can ask before they read a body. */
  admit(client: string): Promise<SettleAnswer | null>;
  /** The rest of a call that was let in. */
  settleAdmitted(body: unknown, client: string): Promise<SettleAnswer>;
  /** The whole call. `client` is the key under which it is counted; any body at all gets an answer. */
  settle(body: unknown, client: string): Promise<SettleAnswer>;
  /** Throws Unavailable while the ledger cannot be read. */
  descriptor(): Promise<ReturnType<typeof describeFacilitator>>;
}

/** Wires the facilitator's parts over the store that it shares with our own Lightning routes. */
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
      const figures = await counts.current().catch((error) => {
        log.error({ err: error }, 'the figures of the facilitator cannot be read');
        throw new Unavailable('replay_store_unavailable', 'The store of claims does not answer; try again later.');
      });
      return describeFacilitator(publicOrigin, config, figures);
    },
  };
}
