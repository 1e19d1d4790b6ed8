import type { Random } from '../engine/random.ts';
import type { Change, MoveOf } from '../moves/move.ts';
import { boundHash } from '../record/bound-hash.ts';
import type { Authorization, Requirement } from '../record/presentation.ts';
import type { Route } from '../service/catalogue.ts';
import { PUBLIC_ORIGIN } from '../service/environment.ts';
import { signDigest, toHex, twinOf } from '../world/chain/keys.ts';
import { cancelDigest, type Terms } from '../world/chain/token.ts';
import { type Payer, signTerms } from '../world/payers.ts';
import type { World } from '../world/world.ts';
import { type Desk, queryOf, type Wanted, type Way } from './desk.ts';

type Signed = Authorization & { readonly rail: 'usdc' | 'gateway' };

/** A payment that the adversary has signed. */
export interface Sale extends Wanted {
  readonly id: string;
  readonly payer: Payer;
  readonly authorization: Signed;
  readonly identifier: string | null;
}

/** An invoice that he was offered. */
export interface Offered extends Wanted {
  readonly id: string;
  readonly requirement: Requirement;
  readonly paymentHash: string;
  readonly viaTools: boolean;
  /** Once he has paid, or where he made the invoice himself. */
  preimage: string | null;
}

interface Varied extends Wanted {
  readonly authorization: Signed;
  readonly accepted: Requirement;
  readonly shouted: boolean;
}

/** Buyers who plan: what they hold, and every way of presenting it. */
export function createAdversary(world: World, desk: Desk, random: Random) {
  const { payers, chain, gateway, scheduler, catalogue, accounts, lightning } = world;
  const sales = new Map<string, Sale>();
  const offers = new Map<string, Offered>();
  const routeOf = (path: string): Route => catalogue.routes.find((route) => route.path === path) as Route;
  const domainOf = (rail: 'usdc' | 'gateway'): Buffer => (rail === 'gateway' ? gateway.domain : chain.token.domain);
  const sign = (payer: Payer, rail: 'usdc' | 'gateway', terms: Terms): Signed => ({
    rail,
    terms,
    signature: signTerms(payer, domainOf(rail), terms),
  });

  function buy(move: MoveOf<'buy'>): void {
    const { id, rail, validFor, validSince, identifier } = move;
    const [payer, route] = [payers.get(move.payer), routeOf(move.route)];
    const now = BigInt(Math.floor(scheduler.nowMs() / 1000));
    const terms: Terms = {
      from: payer.address,
      to: accounts.seller.address,
      value: route.price,
      nonce: toHex(random.bytes(32)),
      validAfter: now - BigInt(validSince),
      validBefore: now + BigInt(validFor),
    };
    const sale: Sale = { id, payer, route, tag: id, authorization: sign(payer, rail, terms), identifier };
    sales.set(id, sale);
    presentAs(sale, vary(sale, 'nothing', route), identifier, move);
  }

  function presentAs(sale: Sale, varied: Varied, identifier: string | null, way: Way): void {
    void desk.present({ ...varied, by: sale.payer.name, identifier }, way);
  }

  /** What is presented in place of what was first. The other side may have promised anything, so that every part can differ. */
  function vary(sale: Sale, change: Change, other: Route): Varied {
    const { route, tag, authorization, payer } = sale;
    const { rail, terms } = authorization;
    const same = { route, tag, authorization, accepted: desk.requirement(route, rail), shouted: false };
    const anew = (changed: Partial<Terms>): Varied => ({
      ...same,
      authorization: sign(payer, rail, { ...terms, ...changed }),
    });
    const withSignature = (signature: Buffer): Varied => ({ ...same, authorization: { rail, terms, signature } });
    switch (change) {
      case 'the request':
        return { ...same, route: other, accepted: desk.requirement(other, rail) };
      case 'the parameters':
        return { ...same, tag: `${tag}x` };
      case 'the spelling':
        return { ...same, shouted: true };
      case 'the amount':
        return anew({ value: terms.value + (random.chance(0.5) ? 1n : -1n) });
      case 'amount and request':
        return { ...anew({ value: other.price }), route: other, accepted: desk.requirement(other, rail) };
      case 'the recipient':
        return anew({ to: accounts.elsewhere.address });
      case 'not valid before':
        return anew({ validAfter: terms.validAfter + 1n });
      case 'not valid after':
        return anew({ validBefore: terms.validBefore + 60n });
      case 'the signature':
        return withSignature(random.bytes(random.pick([65, 65, 96])));
      case 'the twin of the signature':
        return withSignature(twinOf(authorization.signature));
      case 'a signature over other terms':
        return withSignature(sign(payer, rail, { ...terms, validBefore: terms.validBefore + 1n }).signature);
      case 'the rail': {
        const turned = rail === 'usdc' ? 'gateway' : 'usdc';
        return { ...same, authorization: sign(payer, turned, terms), accepted: desk.requirement(route, turned) };
      }
      default:
        return same;
    }
  }

  function again({ of, change, route, identifier }: MoveOf<'again' | 'race'>, way: Way): void {
    const sale = sales.get(of);
    if (sale) presentAs(sale, vary(sale, change, routeOf(route)), identifier ?? sale.identifier, way);
  }

  async function offer(move: MoveOf<'offer'>): Promise<void> {
    const wanted = { route: routeOf(move.route), tag: move.id };
    const reported = await desk.ask(wanted, move, 'lightning');
    const requirement = reported?.offer?.accepts().find(({ network }) => network.startsWith('lnbtc:'));
    const invoice = lightning.invoices().find(({ text }) => text === requirement?.extra.invoice);
    if (!requirement || !invoice) return;
    const made = {
      ...wanted,
      id: move.id,
      requirement,
      paymentHash: invoice.paymentHash,
      viaTools: move.viaTools,
      preimage: null,
    };
    offers.set(move.id, made);
  }

  function pay({ of }: MoveOf<'pay'>): void {
    const offered = offers.get(of);
    if (offered) offered.preimage ??= lightning.pay(offered.paymentHash);
  }

  function redeem({ of, change, route, ...way }: MoveOf<'redeem'>): void {
    const offered = offers.get(of);
    if (!offered) return;
    const preimage =
      change === 'the preimage' || offered.preimage === null ? random.bytes(32).toString('hex') : offered.preimage;
    const wanted = {
      route: change === 'the request' ? routeOf(route) : offered.route,
      tag: change === 'the parameters' ? `${offered.tag}x` : offered.tag,
    };
    const accepted = acceptedFor(offered, change, wanted);
    const proof = { ...wanted, by: 'a payer of invoices', accepted, preimage, paymentHash: offered.paymentHash };
    void desk.presentProof(proof, { ...way, viaTools: offered.viaTools });
  }

  /** What he says that he was offered: as it was, of another invoice, or made out to the request that he wants now. */
  function acceptedFor({ id, requirement }: Offered, change: Change, wanted: Wanted): Requirement {
    const other = [...offers.values()].find((one) => one.id !== id)?.requirement;
    if (change === 'the invoice') return other ?? requirement;
    if ((change !== 'the request' && change !== 'the parameters') || random.chance(0.4)) return requirement;
    const requestHash = boundHash(`${PUBLIC_ORIGIN}/v1/lightning${wanted.route.path}?${queryOf(wanted)}`);
    return { ...requirement, extra: { ...requirement.extra, requestHash } };
  }

  function claim({ of, from, at }: MoveOf<'claim'>): void {
    const offered = offers.get(of);
    if (!offered?.preimage) return;
    const { paymentHash, requirement, preimage } = offered;
    void desk.claim(requirement, preimage, { from, at }).then((received) => {
      if ('broken' in received) return;
      const { success } = JSON.parse(received.body) as { success?: boolean };
      if (success !== true) return;
      claims.add(paymentHash);
      for (const listener of claimListeners) listener(paymentHash);
    });
  }

  const claims = new Set<string>();
  const claimListeners: ((paymentHash: string) => void)[] = [];

  /**
   * A tenant of a shared node pays us nothing and has a preimage all the same: of an invoice that he makes for what was offered, which he may even
   * have paid to himself, or of ours, which he has read from the node's books.
   */
  function forge({ of, id }: MoveOf<'forge'>): void {
    const offered = offers.get(of);
    if (!offered) return;
    if (random.chance(0.5)) {
      offered.preimage ??= lightning.peek(offered.paymentHash);
      return;
    }
    const { requirement, route, tag, viaTools } = offered;
    const invoice = lightning.makeForTenant(BigInt(requirement.amount), String(requirement.extra.requestHash));
    const forged = { ...requirement, extra: { ...requirement.extra, invoice: invoice.text } };
    const { paymentHash, preimage } = invoice;
    if (random.chance(0.5)) lightning.pay(paymentHash);
    offers.set(id, { id, route, tag, viaTools, requirement: forged, paymentHash, preimage });
  }

  return {
    sales,
    offers,
    /** Payment hashes that the facilitator's route has reported as claimed. */
    claims,
    onClaimed: (listener: (paymentHash: string) => void): void => void claimListeners.push(listener),
    buy,
    again,
    offer,
    pay,
    redeem,
    claim,
    forge,
    /** The payer's signature that takes an authorization back. */
    cancellation: ({ payer, authorization }: Sale): Buffer =>
      signDigest(cancelDigest(chain.token.domain, payer.address, authorization.terms.nonce), payer.account),
    /** The same nonce, made out to somebody else. */
    elsewhere: ({ payer, authorization }: Sale, rail: 'usdc' | 'gateway'): Signed =>
      sign(payer, rail, {
        ...authorization.terms,
        to: accounts.elsewhere.address,
        value: random.chance(0.5) ? authorization.terms.value : 1n,
      }),
  };
}

export type Adversary = ReturnType<typeof createAdversary>;
