import { presenter } from './motif-parts.ts';
import type { Drawn, Sketch } from './sketch.ts';

// Against the Lightning rail.

/** A proof presented several times at once, and again after the process died. */
export function redeemedTwice(sketch: Sketch): Drawn[] {
  const { random } = sketch;
  const id = sketch.newId('offer');
  const who = presenter(sketch);
  const elsewhere = () => ({ ...who, from: sketch.client(), at: random.pick(sketch.instances) });
  const redeem = (times: number): Drawn => ({
    do: 'redeem',
    of: id,
    change: 'nothing',
    route: '/sim/cheap',
    times,
    ...elsewhere(),
    pauseMs: random.pick([0, 30, 500]),
  });
  const kill: Drawn[] = random.chance(0.5)
    ? [{ do: 'kill', at: who.at, afterEvents: random.int(25), downMs: 200, pauseMs: 1200 }]
    : [];
  return [
    {
      do: 'offer',
      id,
      route: random.pick(['/sim/cheap', '/sim/dear', '/sim/slow']),
      ...who,
      pauseMs: random.pick([300, 10_500]),
    },
    { do: 'pay', of: id, pauseMs: 50 },
    redeem(random.between(2, 3)),
    ...kill,
    redeem(1),
    redeem(2),
  ];
}

/** A proof claimed through the facilitator and at our own checkout, in one order or the other. */
export function claimedElsewhere(sketch: Sketch): Drawn[] {
  const { random } = sketch;
  const id = sketch.newId('offer');
  const who = presenter(sketch);
  const claim: Drawn = {
    do: 'claim',
    of: id,
    from: sketch.client(),
    at: random.pick(sketch.instances),
    pauseMs: random.pick([0, 500]),
  };
  const redeem: Drawn = {
    do: 'redeem',
    of: id,
    change: 'nothing',
    route: '/sim/cheap',
    times: 1,
    ...who,
    pauseMs: random.pick([0, 500]),
  };
  const order = random.chance(0.5) ? [claim, redeem] : [redeem, claim];
  return [{ do: 'offer', id, route: '/sim/cheap', ...who, pauseMs: 300 }, { do: 'pay', of: id, pauseMs: 50 }, ...order];
}

/** Proofs of a shared node's tenant, who has not paid us: with our invoice's preimage, and with an invoice of his own. */
export function forgedProofs(sketch: Sketch): Drawn[] {
  const [id, forged] = [sketch.newId('offer'), sketch.newId('offer')];
  const who = presenter(sketch);
  const redeem = (of: string): Drawn => ({
    do: 'redeem',
    of,
    change: 'nothing',
    route: '/sim/cheap',
    times: 1,
    ...who,
    pauseMs: 300,
  });
  return [
    { do: 'offer', id, route: '/sim/cheap', ...who, pauseMs: 300 },
    { do: 'forge', of: id, id: forged, ...who, pauseMs: 20 },
    redeem(id),
    redeem(forged),
  ];
}
