import { PRUNE_CHUNK } from '../claim-caps.ts';
import type { Pools } from '../db/connections.ts';
import type { WriteQueue } from '../db/write-queue.ts';
import type { LightningStore, ProofKey } from '../ports/lightning.ts';
import { claimWrite, createClaimReads } from './lightning-claims.ts';
import { COUNTED_CLAIMS, countedClaim } from './lightning-counted-claims.ts';
import { ANSWER, grantWrites } from './lightning-grants.ts';
import { createInvoiceReads, recordInvoiceWrite } from './lightning-invoices.ts';
import { pruneSteps } from './lightning-prune.ts';

interface LightningStoreOptions {
  readonly pools: Pools;
  readonly queue: WriteQueue;
  ping(): Promise<void>;
}

/** The Lightning rail's store on PostgreSQL. The routes and facilitators of all instances claim every proof here. */
export function createLightningStore({ pools, queue, ping }: LightningStoreOptions): LightningStore {
  const invoices = createInvoiceReads(pools);
  const claims = createClaimReads(pools);
  const { write } = queue;

  return {
    recordInvoice: (record, sealedReply) => write(recordInvoiceWrite(record, sealedReply)),
    findInvoice: invoices.find,
    keptReply: invoices.keptReply,
    claim: async (claim) =>
      claim.account ? queue.share(COUNTED_CLAIMS, countedClaim(claim, claim.account)) : write(claimWrite(claim)),
    findClaim: claims.find,
    takeLease: (key, holder, now, until) => write(grantWrites.takeLease(key, holder, now, until)),
    releaseLease: (key, holder) => write(grantWrites.releaseLease(key, holder)),
    releaseLeasesExcept: (bootId) => write(grantWrites.releaseLeasesExcept(bootId)),
    releaseLeasesOf: (bootId) => write(grantWrites.releaseLeasesOf(bootId)),
    storeAnswer: (key, holder, sealedBody) => write(grantWrites.storeAnswer(key, holder, sealedBody)),
    answer: async (key: ProofKey) => (await pools.read<{ body: Uint8Array }>(ANSWER(key)))[0]?.body ?? null,
    delivered: (key, now, keepUntil) => write(grantWrites.delivered(key, now, keepUntil)),
    facilitatorCounts: claims.counts,
    clientCount: claims.clientCount,
    bodyBytes: invoices.bodyBytes,
    offeredBytes: invoices.offeredBytes,
    // Each chunk is a write of the queue, so that writes which arrived meanwhile come first.
    prune: async (now) => {
      for (const step of pruneSteps) {
        while ((await write(step(now))) === PRUNE_CHUNK);
      }
    },
    ping,
  };
}
