import { keyOf, type Presentation } from '../record/presentation.ts';
import { COLLECTOR } from '../world/chain/channel-terms.ts';
import type { World } from '../world/world.ts';
import { nameOf } from './paid.ts';
import type { Tell } from './promise.ts';

/** Words that say that an authorization is used, or does not fit this price, which is no word about what became of its money. */
const USED = /already_used|nonce_already|duplicate_settlement|value_mismatch/;
const SPENT = /payment_already_used|duplicate_settlement/;

/** Words that say that a client's idea of its channel is old. */
const STALE = /cumulative_amount_mismatch|cumulative_below_claimed/;

/** A movement of a payment's money to the seller: who let it happen, and since when it could not be stopped. */
interface Moved {
  readonly ours: boolean;
  readonly sinceMs: number;
  readonly doneMs: number;
}

/** Whether what was said of the money was true, by the chain and by what was on its way there. */
export function createChargedCheck(world: World, tell: Tell) {
  const { book, evidence, accounts, handings, facilitator, gateway, chain, scenario } = world;
  const ours = new Set<string>([accounts.relayer.address, accounts.facilitator.address]);
  // Nodes may lag that far behind what somebody else has done.
  const lateMs = scenario.fair ? 1500 : 6000;

  function movedOnChain({ authorization }: Presentation): Moved | null {
    if (!authorization) return null;
    const { from, nonce } = authorization.terms;
    const ended = evidence.of(from, nonce);
    const to = authorization.rail === 'channels' ? COLLECTOR : accounts.seller.address;
    if (ended?.kind !== 'paid' || ended.to !== to || ended.units !== authorization.terms.value) return null;
    const sent = handings.of(`${authorization.rail} ${from} ${nonce}`);
    const own = ours.has(ended.sender);
    const first = sent.find(({ hash }) => hash === null || hash === ended.hash) ?? sent[0];
    const doneMs = chain.timeOf(ended.block) * 1000;
    // A facilitator whose transaction has reverted takes nothing until it gets the authorization again.
    const sinceMs = own ? (facilitator.beganMs(ended.hash) ?? first?.atMs ?? doneMs) : doneMs;
    return { ours: own, sinceMs, doneMs };
  }

  function movedAtGateway({ authorization }: Presentation): Moved | null {
    const { from, nonce } = authorization?.terms ?? {};
    const transfer = gateway.transfers().find((one) => one.from === from && one.nonce === nonce);
    if (!transfer || transfer.status === 'failed' || transfer.to !== accounts.seller.address) return null;
    const sent = handings.of(`gateway ${from} ${nonce}`).filter(({ atMs }) => atMs <= transfer.atMs);
    return { ours: transfer.by !== null, sinceMs: sent.at(-1)?.atMs ?? transfer.atMs, doneMs: transfer.atMs };
  }

  /** Each of two ledgers can only tell of what it has taken itself. */
  const isElsewhere = (presentation: Presentation, key: string): boolean =>
    scenario.twin && book.of(key).some((one) => (one.at === 'twin') !== (presentation.at === 'twin'));

  /** Whether another request may be what the money was taken for: it was answered, or its end is not known. */
  function isForAnother(presentation: Presentation, key: string): boolean {
    const reported = presentation.reported?.atMs ?? 0;
    return book
      .of(key)
      .some(
        (one) =>
          one.asked !== presentation.asked &&
          one.atMs <= reported &&
          (one.reported === null || one.reported.atMs > reported || one.reported.charged !== 'no'),
      );
  }

  /** Whether the same payment was under way in another request at the same time: what one of them is told it may have read before the other began. */
  const overlaps = (presentation: Presentation, key: string): boolean =>
    book
      .of(key)
      .some(
        (one) =>
          one !== presentation &&
          one.atMs <= (presentation.reported?.atMs ?? 0) &&
          (one.reported?.atMs ?? Number.POSITIVE_INFINITY) >= presentation.atMs,
      );

  function check(presentation: Presentation): void {
    const { reported, authorization, atMs } = presentation;
    if (reported?.charged !== 'no' || !authorization || SPENT.test(reported.code)) return;
    if (authorization.rail === 'channels' && STALE.test(reported.code)) return;
    const key = keyOf(authorization);
    const same = book.of(key).every((one) => one.authorization?.signature.equals(authorization.signature));
    const moved = authorization.rail === 'gateway' ? movedAtGateway(presentation) : movedOnChain(presentation);
    if (!moved || !same || isElsewhere(presentation, key) || isForAnother(presentation, key)) return;
    const said = `${nameOf(presentation)} got ${reported.status} ${reported.code}`;
    const knownMs = overlaps(presentation, key) ? atMs : reported.atMs;
    if (moved.ours && moved.sinceMs <= knownMs)
      tell('charged said the truth', `${said}, and the service has taken the money`);
    const isPublic = handings.of(key).some((one) => one.atMs < atMs);
    // A deposit that a third party sends is the payer's money still, in the payer's channel.
    if (
      !moved.ours &&
      authorization.rail !== 'channels' &&
      isPublic &&
      moved.doneMs + lateMs < atMs &&
      !USED.test(reported.code)
    )
      tell('charged said the truth', `${said}, and the money had gone to the seller before`);
  }

  book.onAnswered(check);
  return {
    /** Once everything has ended, what was on its way is known. */
    atRest: (): void => {
      for (const presentation of book.presentations()) check(presentation);
    },
  };
}
