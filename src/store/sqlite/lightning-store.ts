import type { Sqlite } from '../../lib/sqlite-file.ts';
import { PRUNE_CHUNK } from '../claim-caps.ts';
import { groupCommitOf } from '../db/group-commit.ts';
import type { LightningStore } from '../ports/lightning.ts';
import { createLightningClaims } from './lightning-claims.ts';
import { createLightningGrants } from './lightning-grants.ts';
import { createLightningInvoices } from './lightning-invoices.ts';
import { createPruneSteps } from './lightning-prune.ts';

/**
 * The Lightning rail's store on the ledger's database. Our routes and the facilitator claim every proof here.
 * Concurrent writes of all kinds share durable transactions. Reads see committed data.
 */
export function createLightningStore(db: Sqlite): LightningStore {
  const commit = groupCommitOf(db);
  const invoices = createLightningInvoices(db);
  const claims = createLightningClaims(db);
  const grants = createLightningGrants(db);
  const pruneSteps = createPruneSteps(db);

  return {
    recordInvoice: (record, sealedReply) => commit(() => invoices.record(record, sealedReply)),
    findInvoice: async (key) => invoices.find(key),
    keptReply: async (key) => invoices.keptReply(key),
    claim: (claim) => commit(() => claims.claim(claim)),
    findClaim: async (key) => claims.find(key),
    takeLease: (key, holder, now, until) => commit(() => grants.takeLease(key, holder, now, until)),
    releaseLease: (key, holder) => commit(() => grants.releaseLease(key, holder)),
    releaseLeasesExcept: (bootId) => commit(() => grants.releaseLeasesExcept(bootId)),
    releaseLeasesOf: (bootId) => commit(() => grants.releaseLeasesOf(bootId)),
    storeAnswer: (key, holder, sealedBody) => commit(() => grants.storeAnswer(key, holder, sealedBody)),
    answer: async (key) => grants.answer(key),
    delivered: (key, now, keepUntil) => commit(() => grants.delivered(key, now, keepUntil)),
    facilitatorCounts: async (day, ownPayTo) => claims.counts(day, ownPayTo),
    clientCount: async (day, clientHash) => claims.clientCount({ day, clientHash }),
    bodyBytes: async () => invoices.bodyBytes(),
    offeredBytes: async () => invoices.offeredBytes(),
    // Each chunk is a write of the group commit, so that writes which arrived meanwhile come first.
    prune: async (now) => {
      for (const step of pruneSteps) {
        while ((await commit(() => step(now))) === PRUNE_CHUNK);
      }
    },
    ping: async () => invoices.ping(),
  };
}
