import { CLIENTS, runAs } from '../engine/owner.ts';
import type { Random } from '../engine/random.ts';
import type { MoveOf } from '../moves/move.ts';
import { toHex } from '../world/chain/keys.ts';
import { signTerms } from '../world/payers.ts';
import type { World } from '../world/world.ts';
import type { Desk } from './desk.ts';

type Flood = MoveOf<'flood'>;

const sleep = (ms: number) => new Promise<void>((next) => void setTimeout(next, ms));

/** Somebody without funds who keeps the service busy: nothing that he presents could ever be settled. */
export function createFlooding(world: World, desk: Desk, random: Random) {
  const { scheduler, payers, chain, catalogue, accounts } = world;
  const route = catalogue.routes.find(({ path }) => path === '/sim/cheap') as (typeof catalogue.routes)[number];

  function addressOf({ ipv6 }: Flood, at: number): string {
    // All of one /48.
    return ipv6 ? `2001:db8:77:${(at + 1).toString(16)}::1` : `198.51.100.${1 + at}`;
  }

  function present({ kind }: Flood, from: string): void {
    const way = { from, at: random.pick(world.instances).name };
    const tag = 'flood';
    if (kind === 'garbage') {
      const headers = {
        'payment-signature': random.pick(['x', '=='.repeat(40), Buffer.from('{"x402Version":2}').toString('base64')]),
      };
      void desk.send({ method: 'GET', url: `/v1/paid${route.path}`, headers, from }, way);
      return;
    }
    // An offer is made of an answer: its endpoint runs.
    if (kind === 'unpaid offers') return void desk.ask({ route, tag: 'an offer' }, way, 'lightning');
    const now = BigInt(Math.floor(scheduler.nowMs() / 1000));
    const payer = payers.newAccount();
    const terms = {
      from: payer.address,
      to: accounts.seller.address,
      value: route.price,
      nonce: toHex(random.bytes(32)),
      validAfter: now - 600n,
      validBefore: now + 600n,
    };
    const signature = kind === 'bad signatures' ? random.bytes(65) : signTerms(payer, chain.token.domain, terms);
    const authorization = { rail: 'usdc', terms, signature } as const;
    void desk.present(
      { route, tag, by: 'a flood', authorization, accepted: desk.requirement(route, 'usdc'), identifier: null },
      way,
    );
  }

  async function flood(move: Flood): Promise<void> {
    const untilMs = scheduler.nowMs() + move.seconds * 1000;
    for (let at = 0; scheduler.nowMs() < untilMs; at++) {
      present(move, addressOf(move, at % move.addresses));
      await sleep(1000 / move.perSecond);
    }
  }

  return (move: Flood): void => void runAs(CLIENTS, () => flood(move));
}
