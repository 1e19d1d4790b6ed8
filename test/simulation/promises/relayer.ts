import { nonceKey } from '../record/presentation.ts';
import type { Mined } from '../world/chain/chain.ts';
import { SETTLEMENT } from '../world/chain/channel-terms.ts';
import { signerOf } from '../world/chain/keys.ts';
import { unitsOf } from '../world/chain/state.ts';
import { receiveDigest, transferDigest } from '../world/chain/token.ts';
import { authorizationsIn, type Carried, type Handing } from '../world/handings.ts';
import type { World } from '../world/world.ts';
import type { Tell } from './promise.ts';

const DAY_MS = 86_400_000;
/** What the settling process learns from receipts and reports to every process that sells. */
const NOTICED_MS = 6000;
/** Blocks that are looked through for one in which the token was well. */
const LOOKED_BACK = 400;
/** How a wallet makes a transfer fail. */
const BY_WALLET = /invalid signature|out of gas/;

/** What the payer has signed, by the rail that carries it. */
const digestOf = { usdc: transferDigest, channels: receiveDigest };

const weiOf = (usdc: string | undefined): bigint | null =>
  usdc === undefined || usdc === 'off' ? null : BigInt(Math.round(Number(usdc) * 1e6)) * 10n ** 12n;

/** Gas of one transaction, as it counts against a day's budget. */
interface Cost {
  readonly kind: 'gas' | 'failures';
  readonly hash: string;
  readonly wei: bigint;
  readonly atMs: number;
}

/** What the relayer may spend, and on what: judged by the chain and by what has left the service. */
export function createRelayerCheck(world: World, tell: Tell) {
  const { chain, accounts, handings, scenario, book, evidence, scheduler, instances } = world;
  const daily = weiOf(scenario.env.RELAYER_DAILY_GAS_USDC);
  const failures = weiOf(scenario.env.RELAYER_DAILY_FAILURES_USDC);
  /** When a budget of a day was used up, by day. */
  const spentAt = new Map<string, number>();
  const sums = new Map<string, bigint>();
  /** Payers with code whose lone transaction failed by their own doing: when, and how often instances had started by then. */
  const griefers = new Map<string, { atMs: number; starts: number }>();
  /** Since when one transaction after the other is lost to the token itself, and the last of their blocks. */
  let doomed = { starts: -1, block: 0, sinceMs: 0 };
  let read = 0;

  /** How often instances had started when a transaction was sent, by its hash. */
  const startsAt = new Map<string, number>();
  /** What was spent and is not noticed yet. */
  let unnoticed: Cost[] = [];

  const starts = (): number => instances.reduce((sum, one) => sum + one.starts(), 0);
  /** When it was presented for the first time since it was last refused. */
  function presentedMsOf({ rail, terms: { from, nonce } }: Carried): number | undefined {
    const shown = book.of(nonceKey(rail, from, nonce));
    return (shown.find(({ reported }) => reported?.charged !== 'no') ?? shown.at(-1))?.atMs;
  }

  /** What a process has spent it knows once it has seen the receipt: a process that died before that has told nobody. */
  function countNoticed(): void {
    const now = scheduler.nowMs();
    // A cost that could not be written is not in the store, and the next start does not know it.
    for (const cost of unnoticed.filter(({ atMs }) => atMs + NOTICED_MS <= now))
      if (startsAt.get(cost.hash) === starts() && !world.hadSpoiltDisk(cost.atMs, cost.atMs + NOTICED_MS)) spend(cost);
    unnoticed = unnoticed.filter(({ atMs }) => atMs + NOTICED_MS > now);
  }

  function spend({ kind, wei, atMs }: Cost): void {
    const day = `${kind} ${Math.floor(atMs / DAY_MS)}`;
    const sum = (sums.get(day) ?? 0n) + wei;
    sums.set(day, sum);
    const most = kind === 'gas' ? daily : failures;
    if (most !== null && sum >= most && !spentAt.has(day)) spentAt.set(day, atMs);
  }

  function judgeMined(one: Mined): void {
    const { transaction, block, gasUsed, gasPrice } = one;
    if (transaction.from !== accounts.relayer.address) return;
    const atMs = chain.timeOf(block) * 1000;
    const wei = BigInt(gasUsed) * gasPrice;
    const inside = authorizationsIn(transaction, chain.channelTerms);
    const settled = inside.filter(
      ({ terms }) => evidence.of(terms.from, terms.nonce)?.hash === transaction.hash,
    ).length;
    const cost = { hash: transaction.hash, wei, atMs };
    unnoticed.push({ ...cost, kind: 'gas' });
    // A claim or a refund that goes through settles no payment, and is no failure.
    if (settled > 0 || (transaction.to === SETTLEMENT && one.ok)) return;
    unnoticed.push({ ...cost, kind: 'failures' });
    const [only, ...others] = inside;
    if (!only || others.length > 0) return;
    const hasCode = (chain.viewAt(block).get(`code ${only.terms.from}`) ?? null) !== null;
    if (hasCode && BY_WALLET.test(one.why) && !griefers.has(only.terms.from))
      griefers.set(only.terms.from, { atMs, starts: starts() });
    // Of a payer that had the money: of any other it is that payer's doing as much as the token's.
    const isPlain = !hasCode && unitsOf(chain.viewAt(block), only.terms.from) >= only.terms.value;
    if (isPlain && /paused|blacklisted/.test(one.why)) judgeDoomed(block, one.why, presentedMsOf(only) ?? atMs);
  }

  const isTokenWell = (block: number): boolean => {
    const view = chain.viewAt(block);
    return !view.get('paused') && !view.get(`blocked ${accounts.seller.address}`);
  };

  /** One transaction tells that the token lets nothing through: what is presented later than that is not sent. */
  function judgeDoomed(block: number, why: string, presentedMs: number): void {
    const from = Math.max(doomed.block, block - LOOKED_BACK);
    const blocks = Array.from({ length: Math.max(0, block - from) }, (_, at) => from + at);
    const isOther =
      doomed.starts !== starts() ||
      blocks.some(isTokenWell) ||
      // What a provider that lags or lies says of the token is believed.
      world.providers.wereUpset(doomed.sinceMs, scheduler.nowMs());
    if (isOther) doomed = { starts: starts(), block, sinceMs: chain.timeOf(block) * 1000 };
    doomed.block = block;
    if (presentedMs > doomed.sinceMs + NOTICED_MS)
      tell('the relayer keeps its bounds', `it sold on while the token let nothing through: ${why}`);
  }

  /** Reads what was mined since the last time. */
  function catchUp(): void {
    chain.head();
    const all = chain.allMined();
    for (; read < all.length; read++) judgeMined(all[read] as Mined);
    countNoticed();
  }

  function judgeHanding({ to, rail, atMs, terms, signature, hash }: Handing): void {
    if (to !== 'chain' || rail === 'gateway') return;
    if (hash !== null && !startsAt.has(hash)) startsAt.set(hash, starts());
    const key = nonceKey(rail, terms.from, terms.nonce);
    if (handings.of(key).length > 1) return;
    const endsMs = Number(terms.validBefore) * 1000;
    if (endsMs <= atMs - 1000 && !world.wasSuspended(endsMs - 1000, atMs))
      tell(
        'the relayer keeps its bounds',
        `it sent an authorization that had run out ${Math.round(atMs / 1000 - Number(terms.validBefore))} s before`,
      );
    catchUp();
    const presentedMs = presentedMsOf({ rail, terms, signature }) ?? atMs;
    // A machine that was suspended has noticed nothing meanwhile.
    const isLate = (kind: 'gas' | 'failures') =>
      !world.wasSuspended(presentedMs - NOTICED_MS, presentedMs) &&
      presentedMs > (spentAt.get(`${kind} ${Math.floor(atMs / DAY_MS)}`) ?? Number.POSITIVE_INFINITY) + NOTICED_MS;
    const hasCode = (chain.viewAt(chain.head()).get(`code ${terms.from}`) ?? null) !== null;
    if (isLate('gas')) tell('the relayer keeps its bounds', 'it sold on when the day’s gas was spent');
    if (hasCode && isLate('failures'))
      tell('the relayer keeps its bounds', 'it sold to an account with code when the day’s failures were spent');
    if (!hasCode && signerOf(digestOf[rail](chain.token.domain, terms), signature) !== terms.from)
      tell('the relayer keeps its bounds', 'it sent an authorization that its payer has not signed');
    const ended = evidence.of(terms.from, terms.nonce);
    if (ended && chain.timeOf(ended.block) * 1000 + NOTICED_MS < presentedMs)
      tell('the relayer keeps its bounds', 'it sent an authorization that had been used before it was presented');
    const griefer = griefers.get(terms.from);
    // Whom an instance refuses it forgets when another one takes the lead.
    const isForgotten = scenario.instances > 1 && griefer && world.wasSuspended(griefer.atMs - NOTICED_MS, atMs);
    if (
      !isForgotten &&
      griefer &&
      hasCode &&
      griefer.starts === starts() &&
      presentedMs > griefer.atMs + NOTICED_MS &&
      presentedMs < griefer.atMs + DAY_MS
    )
      tell(
        'the relayer keeps its bounds',
        `it sold again to a wallet that had failed it ${Math.round((scheduler.nowMs() - griefer.atMs) / 1000)} s before`,
      );
  }

  handings.listen(judgeHanding);
  return { afterMove: catchUp };
}
