import type { Adversary } from '../actors/adversary.ts';
import type { ChannelHistory } from '../record/channel-history.ts';
import { keyOf, type Presentation, voucherKey } from '../record/presentation.ts';
import type { World } from '../world/world.ts';
import { clientOf } from './client.ts';
import { createPaidCheck, nameOf } from './paid.ts';
import type { Tell } from './promise.ts';

/** What holds for every answer at the moment when it leaves: it was paid in full, nothing else was sold for the same payment, and its buyer asked. */
export function watchAnswers(
  world: World,
  adversary: Pick<Adversary, 'claims' | 'onClaimed'>,
  history: ChannelHistory,
  tell: Tell,
): void {
  const { book, scenario, evidence, chain, gateway } = world;
  const { claims } = adversary;
  const unpaid = createPaidCheck(world, history);
  const sold = new Map<string, { asked: string; body: string; times: number }>();
  const most = 1 + Number(scenario.env.REDELIVERY_MAX || 5);

  /** Two ledgers that handed the same payment over, of which one was refused, not answered, or died meanwhile: its transfer may be either's. */
  function isEithers({ authorization, at }: Presentation, key: string): boolean {
    if (authorization?.rail !== 'gateway' || !scenario.twin) return false;
    const here = book.of(key).filter((one) => (one.at === 'twin') === (at === 'twin'));
    if (here.length === book.of(key).length) return false;
    // A process that died does not know whether it had handed the payment over.
    const hasDied = here.some(({ reported }) => reported === null);
    return hasDied || gateway.isDisowned(authorization.terms.from, authorization.terms.nonce);
  }

  function checkOnce(presentation: Presentation, key: string): void {
    if (isEithers(presentation, key)) return;
    const { asked, reported, paymentHash } = presentation;
    const body = reported?.body ?? '';
    const before = sold.get(key) ?? { asked, body, times: 0 };
    sold.set(key, { ...before, times: before.times + 1 });
    if (before.asked !== asked)
      tell('no payment is sold twice', `${nameOf(presentation)}: sold before for ${before.asked}`);
    if (before.body !== body) tell('no payment is sold twice', `${nameOf(presentation)}: another answer than before`);
    if (paymentHash !== null && claims.has(paymentHash))
      tell('no payment is sold twice', `${nameOf(presentation)}: claimed through the facilitator`);
    if (presentation.rail !== 'lightning' && before.times >= most)
      tell('no payment is sold twice', `${nameOf(presentation)}: delivered ${before.times + 1} times`);
  }

  /** A claimed voucher stands on the chain too: its answer goes to the client that has bought it. */
  const isSoldBefore = ({ atMs }: Presentation, key: string): boolean =>
    book.of(key).some(({ reported }) => reported?.status === 200 && reported.atMs < atMs);

  function isMinedBefore({ authorization, atMs }: Presentation): boolean {
    const ended = authorization && evidence.of(authorization.terms.from, authorization.terms.nonce);
    return atMs > (ended ? chain.timeOf(ended.block) * 1000 : 0) + 1000;
  }

  function checkRefunded(presentation: Presentation): void {
    const { voucher } = presentation;
    if (voucher && history.of(voucher.channelId).some(({ kind }) => kind === 'refunded')) return;
    tell('charged said the truth', `${nameOf(presentation)}: it was told of a refund, and the chain shows none`);
  }

  /** A settled authorization stands on the chain for anyone to copy. */
  function checkBuyer(presentation: Presentation, key: string): void {
    const { authorization, voucher, request, identifier } = presentation;
    if (!voucher && authorization?.rail !== 'usdc') return;
    if (voucher ? !isSoldBefore(presentation, key) : !isMinedBefore(presentation)) return;
    const knows = book
      .of(key)
      .some(
        (one) =>
          one.number < presentation.number &&
          (clientOf(one.request.from) === clientOf(request.from) ||
            (identifier !== null && one.identifier === identifier)),
      );
    if (!knows) tell('no payment is sold twice', `${nameOf(presentation)}: delivered to somebody who has copied it`);
  }

  adversary.onClaimed((paymentHash) => {
    if (sold.has(`lightning ${paymentHash}`))
      tell(
        'no payment is sold twice',
        `lightning ${paymentHash.slice(0, 8)}: sold here, and claimed through the facilitator`,
      );
  });
  book.onAnswered((presentation) => {
    if (presentation.reported?.status !== 200) return;
    const { authorization, voucher, paymentHash } = presentation;
    if (voucher?.kind === 'refund') return checkRefunded(presentation);
    const own = voucher ? voucherKey(voucher.channelId, voucher.max) : authorization && keyOf(authorization);
    const key = own ?? `lightning ${paymentHash}`;
    const why = unpaid(presentation);
    if (why !== null) tell('no answer without its full price', `${nameOf(presentation)}: ${why}`);
    checkOnce(presentation, key);
    checkBuyer(presentation, key);
  });
}
