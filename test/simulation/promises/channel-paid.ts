import type { ChannelHistory } from '../record/channel-history.ts';
import { type Presentation, type Voucher, voucherKey } from '../record/presentation.ts';
import { WITHDRAW_DELAY_SECONDS } from '../service/environment.ts';
import { signerOf } from '../world/chain/keys.ts';
import { channelOf } from '../world/chain/settlement.ts';
import { USDC } from '../world/chain/token.ts';
import type { World } from '../world/world.ts';

/** What the service has read of a channel counts for a third of the delay; a withdrawal that was asked for before that is known. */
const KNOWN_MS = (WITHDRAW_DELAY_SECONDS * 1000) / 3 + 15_000;

/** Why the contract would not take this voucher in a claim of the seller's; null where it would. */
export function createVoucherJudge({ chain, accounts }: Pick<World, 'chain' | 'accounts'>) {
  const terms = chain.channelTerms;
  const known = new Map<string, string | null>();

  function judge({ config, channelId, max, signature }: Voucher): string | null {
    const { payerAuthorizer, receiver, receiverAuthorizer, token } = config;
    if (terms.channelId(config) !== channelId) return 'its channel is another one';
    const isOurs = receiver === accounts.seller.address && receiverAuthorizer === accounts.authorizer.address;
    if (!isOurs || token !== USDC) return 'its channel pays somebody else';
    // A payer that is a contract may change its mind, so that its own signature promises nothing.
    const signer = signerOf(terms.voucherDigest(channelId, max), signature);
    return signer !== null && signer === payerAuthorizer ? null : 'no claim takes its signature';
  }

  return (voucher: Voucher): string | null => {
    const key = `${voucher.channelId} ${voucher.max} ${voucher.signature.toString('hex')} ${voucher.config.salt}`;
    const before = known.get(key);
    if (before !== undefined) return before;
    const why = judge(voucher);
    known.set(key, why);
    return why;
  };
}

/** Why what the chain holds does not cover a call that was sold from a channel; null where it does. */
export function createChannelPaidCheck(world: World, history: ChannelHistory) {
  const { book, chain, evidence, scheduler } = world;
  const judge = createVoucherJudge(world);

  /** What is missing in the channel for this voucher, at a block and time; null where it is covered. */
  function missing({ channelId, max }: Voucher, block: number, atMs: number): string | null {
    const view = chain.viewAt(block);
    const { balance, totalClaimed } = channelOf(view, channelId);
    const pending = view.get(`withdrawal ${channelId}`) ?? null;
    const asked = history.of(channelId).findLast((event) => event.kind === 'withdrawInitiated' && event.atMs <= atMs);
    const isKnown = asked !== undefined && asked.atMs + KNOWN_MS < atMs;
    const safe = balance - (pending && isKnown ? pending.amount : 0n);
    // Its charge may have been claimed before: then a payer who has asked for the rest takes nothing of it.
    return max <= safe || totalClaimed >= max ? null : `it promises ${max}, and ${safe} are in the channel for it`;
  }

  /** When this voucher was first presented for the same request and not refused. Its answer may have been sold then, and be fetched now. */
  function soldSinceMs({ asked, atMs }: Presentation, { channelId, max }: Voucher): number {
    const same = book
      .of(voucherKey(channelId, max))
      .find((one) => one.asked === asked && one.reported?.charged !== 'no');
    return same?.atMs ?? atMs;
  }

  /** The newest block at a time. */
  function blockAt(atMs: number): number {
    let [low, high] = [0, chain.head()];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (chain.timeOf(middle) * 1000 <= atMs) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  return (presentation: Presentation): string | null => {
    const { voucher, authorization } = presentation;
    if (!voucher) return 'there is no voucher';
    const why = judge(voucher);
    if (why !== null) return why;
    if (authorization && evidence.of(authorization.terms.from, authorization.terms.nonce)?.kind !== 'paid')
      return 'its deposit is not on the chain';
    const wrong = missing(voucher, chain.head(), scheduler.nowMs());
    if (wrong === null) return null;
    const sinceMs = soldSinceMs(presentation, voucher);
    return missing(voucher, blockAt(sinceMs), sinceMs) === null ? null : wrong;
  };
}
