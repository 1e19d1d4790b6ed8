import type { Mined } from '../world/chain/chain.ts';
import { authorizationsIn, type Handing } from '../world/handings.ts';
import type { World } from '../world/world.ts';
import type { Tell } from './promise.ts';

const DAY_MS = 86_400_000;
/** What is noticed by reading receipts and told to everybody who sells. */
const NOTICED_MS = 6000;
/** Lone transactions that may be lost to one cause before it is noticed. */
const DOOMED = 4;
/** Blocks that are looked through for one in which the token was well. */
const LOOKED_BACK = 400;
/** How a wallet makes a transfer fail. */
const BY_WALLET = /invalid signature|out of gas/;

const weiOf = (usdc: string | undefined): bigint | null =>
  usdc === undefined || usdc === '' ? null : BigInt(Math.round(Number(usdc) * 1e6)) * 10n ** 12n;

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
  /** Transactions lost since the token was last well, and the block of the last of them. */
  let doomed = 0;
  let doomedBlock = 0;
  let read = 0;

  const starts = (): number => instances.reduce((sum, one) => sum + one.starts(), 0);

  function spend(kind: 'gas' | 'failures', wei: bigint, most: bigint | null, atMs: number): void {
    const day = `${kind} ${Math.floor(atMs / DAY_MS)}`;
    const sum = (sums.get(day) ?? 0n) + wei;
    sums.set(day, sum);
    if (most !== null && sum >= most && !spentAt.has(day)) spentAt.set(day, atMs);
  }

  function judgeMined(one: Mined): void {
    const { transaction, block, gasUsed, gasPrice } = one;
    if (transaction.from !== accounts.relayer.address) return;
    const atMs = chain.timeOf(block) * 1000;
    const wei = BigInt(gasUsed) * gasPrice;
    const inside = authorizationsIn(transaction);
    const settled = inside.filter(
      ({ terms }) => evidence.of(terms.from, terms.nonce)?.hash === transaction.hash,
    ).length;
    spend('gas', wei, daily, atMs);
    if (settled > 0) return;
    spend('failures', wei, failures, atMs);
    const [only, ...others] = inside;
    if (!only || others.length > 0) return;
    const hasCode = (chain.viewAt(block).get(`code ${only.terms.from}`) ?? null) !== null;
    if (hasCode && BY_WALLET.test(one.why) && !griefers.has(only.terms.from))
      griefers.set(only.terms.from, { atMs, starts: starts() });
    if (/paused|blacklisted/.test(one.why)) judgeDoomed(block, one.why);
  }

  const isTokenWell = (block: number): boolean => {
    const view = chain.viewAt(block);
    return !view.get('paused') && !view.get(`blocked ${accounts.seller.address}`);
  };

  function judgeDoomed(block: number, why: string): void {
    const first = Math.max(doomedBlock, block - LOOKED_BACK);
    for (let at = first; at < block; at++) if (isTokenWell(at)) doomed = 0;
    doomedBlock = block;
    doomed += 1;
    if (doomed > DOOMED)
      tell('the relayer keeps its bounds', `${doomed} transactions in a row failed alike: ${why}`);
  }

  /** Reads what was mined since the last time. */
  function catchUp(): void {
    chain.head();
    const all = [...chain.allMined()];
    for (; read < all.length; read++) judgeMined(all[read] as Mined);
  }

  function judgeHanding({ to, atMs, terms }: Handing): void {
    if (to !== 'chain') return;
    const key = `usdc ${terms.from} ${terms.nonce}`;
    if (handings.of(key).length > 1) return;
    if (Number(terms.validBefore) * 1000 <= atMs - 1000)
      tell(
        'the relayer keeps its bounds',
        `it sent an authorization that had run out ${Math.round(atMs / 1000 - Number(terms.validBefore))} s before`,
      );
    catchUp();
    const presentedMs = book.of(key)[0]?.atMs ?? atMs;
    const isLate = (kind: 'gas' | 'failures') =>
      presentedMs > (spentAt.get(`${kind} ${Math.floor(atMs / DAY_MS)}`) ?? Number.POSITIVE_INFINITY) + NOTICED_MS;
    const hasCode = (chain.viewAt(chain.head()).get(`code ${terms.from}`) ?? null) !== null;
    if (isLate('gas')) tell('the relayer keeps its bounds', 'it sold on when the day’s gas was spent');
    if (hasCode && isLate('failures'))
      tell('the relayer keeps its bounds', 'it sold to an account with code when the day’s failures were spent');
    const ended = evidence.of(terms.from, terms.nonce);
    if (ended && chain.timeOf(ended.block) * 1000 + NOTICED_MS < presentedMs)
      tell('the relayer keeps its bounds', 'it sent an authorization that had been used before it was presented');
    const griefer = griefers.get(terms.from);
    if (
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
