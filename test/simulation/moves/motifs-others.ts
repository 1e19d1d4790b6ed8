import { presenter, VALID } from './motif-parts.ts';
import type { Drawn, Sketch } from './sketch.ts';

// Against processes and the Gateway.

/** The process dies somewhere between a payment's arrival and its end, and the buyer asks again. */
export function killedInTheMiddle(sketch: Sketch): Drawn[] {
  const { random } = sketch;
  const who = presenter(sketch);
  const id = sketch.newId('buy');
  const rail = sketch.rail();
  const downMs = random.pick([0, 300, 3000]);
  const buy: Drawn = {
    do: 'buy',
    id,
    payer: sketch.rich(),
    route: sketch.route(),
    rail,
    ...VALID,
    validFor: Number(sketch.validFor('gateway')),
    ...who,
    pauseMs: 0,
  };
  const kill: Drawn = {
    do: 'kill',
    at: who.at,
    afterEvents: random.int(45),
    downMs,
    pauseMs: downMs + random.pick([200, 1500, 4000]),
  };
  const again = (): Drawn => ({
    do: 'again',
    of: id,
    change: 'nothing',
    route: '/sim/cheap',
    ...who,
    at: random.pick(sketch.instances),
    pauseMs: 1200,
  });
  return [buy, kill, again(), again()];
}

/** The Gateway takes its time with what it was handed, and the payer spends the nonce meanwhile. */
function whileTheGatewayIsLate(sketch: Sketch): Drawn[] {
  const id = sketch.newId('buy');
  const who = presenter(sketch);
  const common = { do: 'buy', payer: sketch.rich(), rail: 'gateway', validFor: 605_500, validSince: 600 } as const;
  return [
    { do: 'gateway', mood: { lateMs: 4000 }, ms: 3000, pauseMs: 5 },
    { ...common, id, route: '/sim/cheap', ...who, pauseMs: 400 },
    { do: 'hand over', of: id, to: 'elsewhere', pauseMs: 2000 },
    { do: 'again', of: id, change: 'nothing', route: '/sim/cheap', ...who, pauseMs: 1500 },
  ];
}

/** Nonces that are spent at the Gateway while their answers are made: some, or so many that one ends after the other for a while. */
export function noncesElsewhere(sketch: Sketch): Drawn[] {
  const { random, scenario } = sketch;
  if (!scenario.fair && random.chance(0.5)) return whileTheGatewayIsLate(sketch);
  const [count, gapMs] = random.pick([[3, 40] as const, [5, 40] as const, [24, 600] as const]);
  return Array.from({ length: count }, (): Drawn[] => {
    const id = sketch.newId('buy');
    const who = presenter(sketch);
    return [
      {
        do: 'buy',
        id,
        payer: sketch.rich(),
        route: '/sim/slow',
        rail: 'gateway',
        validFor: 605_500,
        validSince: 600,
        ...who,
        pauseMs: 60,
      },
      { do: 'hand over', of: id, to: 'elsewhere', pauseMs: gapMs },
    ];
  }).flat();
}

/** One payment presented to two services of the same seller. */
export function twoLedgers(sketch: Sketch): Drawn[] {
  const { scenario, random } = sketch;
  const id = sketch.newId('buy');
  const who = presenter(sketch);
  const first = random.pick(['a', 'twin']);
  const [here, there] = scenario.twin ? [first, first === 'a' ? 'twin' : 'a'] : [who.at, who.at];
  return [
    {
      do: 'buy',
      id,
      payer: sketch.rich(),
      route: '/sim/cheap',
      rail: 'gateway',
      validFor: 605_500,
      validSince: 600,
      ...who,
      at: here,
      pauseMs: random.pick([0, 900]),
    },
    {
      do: 'again',
      of: id,
      change: random.pick(['nothing', 'nothing', 'the request']),
      route: '/sim/dear',
      ...who,
      at: there,
      pauseMs: 900,
    },
  ];
}

/** The process that settles is paused while it settles, long enough for another one to take over, and resumes. */
export function sleepingLeader(sketch: Sketch): Drawn[] {
  const { random } = sketch;
  const at = random.pick(sketch.instances);
  const buys = Array.from(
    { length: random.between(1, 4) },
    (): Drawn => ({
      do: 'buy',
      id: sketch.newId('buy'),
      payer: sketch.rich(),
      route: '/sim/cheap',
      rail: sketch.rail(),
      ...VALID,
      validFor: 605_500,
      ...presenter(sketch),
      pauseMs: random.int(6),
    }),
  );
  return [
    ...buys,
    { do: 'sleep', at, ms: random.pick([6000, 12_000, 20_000]), pauseMs: random.pick([500, 7000, 14_000]) },
  ];
}
