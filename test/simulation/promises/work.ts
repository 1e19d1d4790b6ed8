import type { Presentation } from '../record/presentation.ts';
import type { Run } from '../service/catalogue.ts';
import { unitsOf } from '../world/chain/state.ts';
import type { World } from '../world/world.ts';
import { nameOf } from './paid.ts';
import type { Tell } from './promise.ts';

/** For so long a balance must have been too small: nodes lag, and money moves while it is looked at. */
const POOR_MS = 10_000;
const BLOCK_MS = 500;

/** Nothing of ours is spent for somebody who could not pay: no endpoint runs for a request without a payment in USDC, nor for one without funds behind it. */
export function createWorkCheck(world: World, tell: Tell) {
  const { catalogue, book, chain, evidence, gateway, startMs } = world;
  const byTag = new Map<string, Presentation[]>();
  let seen = 0;
  let presented = 0;

  function index(): void {
    const all = book.presentations();
    for (; presented < all.length; presented++) {
      const one = all[presented] as Presentation;
      const name = `${one.route.path} ${one.tag}`;
      byTag.set(name, [...(byTag.get(name) ?? []), one]);
    }
  }

  function isPoor({ authorization, route, atMs: presentedMs }: Presentation, { atMs, block: newest }: Run): boolean {
    // A machine that was suspended meanwhile goes on with the balance that it had read before.
    if (!authorization || world.wasSuspended(presentedMs, atMs)) return false;
    const { from, value, nonce } = authorization.terms;
    // Somebody else may have sent it: then the payer is poor because it has paid.
    const ended = evidence.of(from, nonce);
    if (ended && ended.kind !== 'canceled' && ended.block <= newest) return false;
    const least = authorization.rail === 'channels' ? value : route.price;
    // The world keeps no history of deposits. So only a payer that has never deposited is poor at the Gateway.
    if (authorization.rail === 'gateway') return !gateway.hadDeposit(from, atMs);
    for (let block = newest; block > newest - POOR_MS / BLOCK_MS; block--)
      if (unitsOf(chain.viewAt(block), from) >= least) return false;
    return atMs > startMs + POOR_MS;
  }

  return {
    afterMove(): void {
      index();
      const runs = catalogue.runs();
      for (; seen < runs.length; seen++) {
        const run = runs[seen] as Run;
        const { path, tag, atMs } = run;
        const askers = (byTag.get(`${path} ${tag}`) ?? []).filter((one) => one.atMs <= atMs);
        const last = askers.at(-1);
        // Over Lightning the answer is made before it is offered.
        if (!last && world.scenario.lightning === 'off')
          tell('nothing is done for who cannot pay', `${path} (${tag}) ran for a request without a payment`);
        if (last && askers.every((one) => one.rail !== 'lightning' && isPoor(one, run)))
          tell('nothing is done for who cannot pay', `${nameOf(last)}: its endpoint ran`);
      }
    },
  };
}
