import { presenter, VALID } from './motif-parts.ts';
import type { Drawn, Sketch } from './sketch.ts';

// Against the chain’s own rail.

/** An authorization that fails at first, and is then used again for something dearer. */
export function dearForCheap(sketch: Sketch): Drawn[] {
  const { random, scenario } = sketch;
  const who = presenter(sketch);
  const id = sketch.newId('buy');
  const again: Drawn = {
    ...{
      do: 'again',
      of: id,
      change: random.pick(['amount and request', 'amount and request', 'a signature over other terms']),
      route: '/sim/dear',
      ...who,
    },
    pauseMs: 4000,
  };
  if (scenario.gateway && random.chance(0.5)) {
    const payer = random.pick(['poor0', 'poor1']);
    return [
      {
        do: 'buy',
        id,
        payer,
        route: '/sim/cheap',
        rail: 'gateway',
        ...VALID,
        validFor: 605_500,
        ...who,
        pauseMs: 2500,
      },
      { do: 'deposit', payer, units: 3000, pauseMs: 10 },
      again,
    ];
  }
  const payer = sketch.wallet();
  return [
    { do: 'program', payer, turnsWhen: 'paid gas', turnsTo: 'no', trusting: true, pauseMs: 600 },
    { do: 'buy', id, payer, route: '/sim/cheap', rail: 'usdc', ...VALID, ...who, pauseMs: 5000 },
    { do: 'program', payer, turnsWhen: 'never', turnsTo: 'no', trusting: true, pauseMs: 700 },
    again,
  ];
}

/** Wallets that pass every check and fail when they are settled, one sale after the other. */
export function griefing(sketch: Sketch): Drawn[] {
  const { random } = sketch;
  const payer = sketch.wallet();
  const turnsTo = random.pick(['no', 'burns some, then no', 'burns some, then no', 'burns all'] as const);
  const buys = Array.from({ length: random.between(4, 12) }, (): Drawn => {
    const who = presenter(sketch);
    return {
      do: 'buy',
      id: sketch.newId('buy'),
      payer,
      route: '/sim/cheap',
      rail: 'usdc',
      ...VALID,
      ...who,
      pauseMs: random.pick([100, 1500]),
    };
  });
  return [{ do: 'program', payer, turnsWhen: 'paid gas', turnsTo, trusting: true, pauseMs: 600 }, ...buys];
}

/** One that failed in public is sent by somebody else, and its payer asks for what he has now paid, or for what must fail. */
export function publicAuthorization(sketch: Sketch): Drawn[] {
  const { random } = sketch;
  const who = presenter(sketch);
  const [id, payer] = [sketch.newId('buy'), sketch.wallet()];
  const route = random.pick(['/selftest/fail', '/sim/cheap', '/sim/dear']);
  return [
    { do: 'program', payer, turnsWhen: 'the relayer sends', turnsTo: 'no', trusting: true, pauseMs: 600 },
    {
      do: 'buy',
      id,
      payer,
      route: random.pick(['/sim/cheap', '/domains/dns']),
      rail: 'usdc',
      ...VALID,
      ...who,
      pauseMs: 5000,
    },
    { do: 'third party sends', of: id, tipGwei: 1, pauseMs: 1500 },
    { do: 'again', of: id, change: 'the request', route, ...who, pauseMs: 1500 },
    { do: 'again', of: id, change: 'nothing', route, ...who, pauseMs: 1500 },
  ];
}

/** An authorization that runs out while its answer is made. */
export function shortValidity(sketch: Sketch): Drawn[] {
  const { random } = sketch;
  const validFor = random.pick([7, 8, 9, 10, 12, 16]);
  const who = presenter(sketch);
  return Array.from({ length: random.between(1, 3) }, () => ({
    ...{ do: 'buy' as const, id: sketch.newId('buy'), payer: sketch.rich(), route: '/sim/slow', rail: 'usdc' as const },
    ...{ validFor, validSince: 600, ...who, pauseMs: random.pick([10, 4000]) },
  }));
}

/** Nobody's payment can be settled for a while, whoever pays. */
export function pausedToken(sketch: Sketch): Drawn[] {
  const { random } = sketch;
  const buys = Array.from(
    { length: random.between(5, 10) },
    (_, at): Drawn => ({
      ...{
        do: 'buy',
        id: sketch.newId('buy'),
        payer: `rich${at % 3}`,
        route: '/sim/cheap',
        rail: 'usdc',
        ...VALID,
        ...presenter(sketch),
      },
      pauseMs: 900,
    }),
  );
  return [{ do: 'token', how: random.pick(['paused', 'seller blocked']), ms: 12_000, pauseMs: 600 }, ...buys];
}

/** Wallets that a facilitator finds good and that fail when it sends. */
export function doomedWallets(sketch: Sketch): Drawn[] {
  const { random } = sketch;
  const programs = ['wallet0', 'wallet1', 'wallet2'].map(
    (payer): Drawn => ({ do: 'program', payer, turnsWhen: 'paid gas', turnsTo: 'no', trusting: true, pauseMs: 100 }),
  );
  const buys = Array.from(
    { length: 6 },
    (_, at): Drawn => ({
      ...{
        do: 'buy',
        id: sketch.newId('buy'),
        payer: `wallet${at % 3}`,
        route: '/sim/cheap',
        rail: 'usdc',
        validFor: 604_900,
        validSince: 600,
        ...presenter(sketch),
      },
      pauseMs: random.pick([20, 400]),
    }),
  );
  return [...programs, { do: 'wait', ms: 700, pauseMs: 0 }, ...buys];
}
