import { GRIEFERS } from '../world/payers.ts';
import { presenter, VALID } from './motif-parts.ts';
import type { Drawn, Sketch } from './sketch.ts';

// Against the chain’s own rail.

type Who = ReturnType<typeof presenter>;

/** A plain payment that reverts in public, because its payer's money is away when it is mined; then the money is back. */
function revertedInPublic(sketch: Sketch, id: string, who: Who, route: string): Drawn[] {
  const payer = sketch.rich();
  return [
    { do: 'trap', payer, trap: 'moves the balance', backMs: 800, pauseMs: 5 },
    { do: 'buy', id, payer, route, rail: 'usdc', ...VALID, ...who, pauseMs: sketch.random.pick([3000, 5000]) },
  ];
}

/** The same of a wallet, which is refused from then on; the process that knows it dies. */
function revertedWallet(sketch: Sketch, id: string, who: Who, route: string): Drawn[] {
  const payer = sketch.wallet();
  const honest: Drawn = { do: 'program', payer, turnsWhen: 'never', turnsTo: 'no', trusting: true, pauseMs: 700 };
  return [
    honest,
    { do: 'trap', payer, trap: 'turns the wallet', backMs: null, pauseMs: 5 },
    { do: 'buy', id, payer, route, rail: 'usdc', ...VALID, ...who, pauseMs: 4000 },
    { do: 'kill', at: who.at, afterEvents: 3, downMs: 200, pauseMs: 2500 },
    honest,
  ];
}

/** A deposit that is gone when the Gateway settles, and is there again later. */
function refusedByGateway(sketch: Sketch, id: string, who: Who): Drawn[] {
  const payer = sketch.random.pick(['poor0', 'poor1']);
  const buy: Drawn = { do: 'buy', id, payer, route: '/sim/slow', rail: 'gateway', ...VALID, validFor: 605_500, ...who };
  return [
    { do: 'deposit', payer, units: 3000, pauseMs: 10 },
    { ...buy, pauseMs: 500 },
    { do: 'deposit', payer, units: -3000, pauseMs: 10_500 },
    { do: 'deposit', payer, units: 3000, pauseMs: 100 },
  ];
}

/** An authorization that fails at first, and is then used again for something dearer. */
export function dearForCheap(sketch: Sketch): Drawn[] {
  const { random, scenario } = sketch;
  const who = presenter(sketch);
  const id = sketch.newId('buy');
  const change = random.pick(['amount and request', 'a signature over other terms', 'the request'] as const);
  const again: Drawn = { do: 'again', of: id, change, route: '/sim/dear', ...who, pauseMs: 4000 };
  if (scenario.gateway && random.chance(0.5)) return [...refusedByGateway(sketch, id, who), again];
  const first = !scenario.fair && random.chance(0.5) ? revertedWallet : revertedInPublic;
  return [...first(sketch, id, who, '/sim/cheap'), again];
}

/** Wallets that pass every check and fail when they are settled, one sale after the other. */
export function griefing(sketch: Sketch): Drawn[] {
  const { random } = sketch;
  const payer = sketch.wallet();
  const turnsTo = random.pick(['no', 'burns some, then no', 'burns some, then no', 'burns all'] as const);
  const byTrap = random.chance(0.5);
  const turnsWhen = byTrap ? 'never' : random.pick(['paid gas', 'the relayer sends'] as const);
  const buys = Array.from({ length: random.between(4, 12) }, (): Drawn[] => {
    const who = presenter(sketch);
    const id = sketch.newId('buy');
    const pauseMs = random.pick([100, 1500]);
    const buy: Drawn = { do: 'buy', id, payer, route: '/sim/cheap', rail: 'usdc', ...VALID, ...who, pauseMs };
    return [...(byTrap ? turning(payer) : []), buy];
  });
  return [{ do: 'program', payer, turnsWhen, turnsTo, trusting: true, pauseMs: 600 }, ...buys.flat()];
}

/** An honest wallet that turns when its payment has left the service. */
function turning(payer: string): Drawn[] {
  return [
    { do: 'program', payer, turnsWhen: 'never', turnsTo: 'no', trusting: true, pauseMs: 600 },
    { do: 'trap', payer, trap: 'turns the wallet', backMs: null, pauseMs: 5 },
  ];
}

/** Many wallets, of which each fails once: none of them can be known. */
export function manyGriefers(sketch: Sketch): Drawn[] {
  return GRIEFERS.flatMap((payer): Drawn[] => {
    const id = sketch.newId('buy');
    const who = presenter(sketch);
    const buy: Drawn = { do: 'buy', id, payer, route: '/sim/cheap', rail: 'usdc', ...VALID, ...who, pauseMs: 1400 };
    return [...turning(payer), buy];
  });
}

/** One that failed in public is sent by somebody else, and its payer asks for what he has now paid, or for what must fail. */
export function publicAuthorization(sketch: Sketch): Drawn[] {
  const { random } = sketch;
  const who = presenter(sketch);
  const id = sketch.newId('buy');
  const route = random.pick(['/selftest/fail', '/sim/cheap', '/sim/dear']);
  const asks = random.chance(0.3) ? presenter(sketch) : who;
  return [
    ...revertedInPublic(sketch, id, who, random.pick(['/sim/cheap', '/domains/dns'])),
    { do: 'third party sends', of: id, tipGwei: 1, pauseMs: 1500 },
    { do: 'again', of: id, change: 'the request', route, ...asks, pauseMs: 1500 },
    { do: 'again', of: id, change: 'nothing', route, ...asks, pauseMs: 1500 },
  ];
}

/** One that failed in public is sent by somebody else, and its payer asks once more for the same, which now cannot be made. */
export function sameCallFails(sketch: Sketch): Drawn[] {
  const who = presenter(sketch);
  const id = sketch.newId('buy');
  const route = sketch.random.pick(['/sim/cheap', '/sim/dear']);
  const again: Drawn = { do: 'again', of: id, change: 'nothing', route, ...who, pauseMs: 700 };
  return [
    ...revertedInPublic(sketch, id, who, route),
    { do: 'third party sends', of: id, tipGwei: 1, pauseMs: 8000 },
    { do: 'moody', ms: 3000, pauseMs: 5 },
    again,
    { ...again, pauseMs: 3000 },
    again,
  ];
}

/** An authorization that runs out while its answer is made. */
export function shortValidity(sketch: Sketch): Drawn[] {
  const { random } = sketch;
  const validFor = random.pick([7, 8, 9, 10, 12, 16]);
  const who = presenter(sketch);
  return Array.from({ length: random.between(1, 3) }, () => ({
    do: 'buy' as const,
    id: sketch.newId('buy'),
    payer: sketch.rich(),
    route: '/sim/slow',
    rail: 'usdc' as const,
    validFor,
    validSince: 600,
    ...who,
    pauseMs: random.pick([10, 4000]),
  }));
}

/** No payer's payment can be settled for a while. */
export function pausedToken(sketch: Sketch): Drawn[] {
  const { random } = sketch;
  const buys = Array.from(
    { length: random.between(5, 10) },
    (_, at): Drawn => ({
      do: 'buy',
      id: sketch.newId('buy'),
      payer: `rich${at % 3}`,
      route: '/sim/cheap',
      rail: 'usdc',
      ...VALID,
      ...presenter(sketch),
      pauseMs: 900,
    }),
  );
  return [{ do: 'token', how: random.pick(['paused', 'seller blocked']), ms: 12_000, pauseMs: 600 }, ...buys];
}

/** Wallets that a facilitator finds good and that fail when it sends. */
export function doomedWallets(sketch: Sketch): Drawn[] {
  const { random } = sketch;
  const chosen = GRIEFERS.slice(random.int(4)).slice(0, 5);
  const armed = chosen.flatMap(turning).map((move) => ({ ...move, pauseMs: 20 }));
  const buys = chosen.map(
    (payer): Drawn => ({
      do: 'buy',
      id: sketch.newId('buy'),
      payer,
      route: '/sim/cheap',
      rail: 'usdc',
      ...VALID,
      validFor: random.pick([900, 604_900]),
      ...presenter(sketch),
      pauseMs: random.pick([5, 40]),
    }),
  );
  return [...armed, { do: 'wait', ms: 700, pauseMs: 0 }, ...buys];
}
