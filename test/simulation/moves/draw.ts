import { createRandom } from '../engine/random.ts';
import type { Scenario } from '../run/scenario.ts';
import { drawChannels } from './draw-channels.ts';
import { MOTIFS } from './motifs.ts';
import type { Change, Motif, Move, MoveName } from './move.ts';
import { createSketch, type Drawn, type Sketch } from './sketch.ts';
import { drawTrouble } from './troubles.ts';

const CHANGES: readonly Change[] = [
  ...(['nothing', 'nothing', 'nothing', 'the request', 'the parameters', 'the spelling', 'the amount'] as const),
  ...(['amount and request', 'the recipient', 'not valid before', 'not valid after', 'the signature'] as const),
  ...(['the twin of the signature', 'a signature over other terms', 'the rail'] as const),
];
const PROOF_CHANGES: readonly Change[] = [
  'nothing',
  'nothing',
  'nothing',
  'the request',
  'the parameters',
  'the preimage',
  'the invoice',
];

/** Draws moves of one name; none where there is nothing yet that they could refer to. */
export function draw(name: MoveName, sketch: Sketch): Drawn[] {
  if (name in MOTIFS) return MOTIFS[name as Motif](sketch);
  const one =
    drawPresenting(name, sketch) ?? drawChain(name, sketch) ?? drawTrouble(name, sketch) ?? drawChannels(name, sketch);
  return one ? [one] : [];
}

function drawPresenting(name: MoveName, sketch: Sketch): Drawn | null {
  const { random } = sketch;
  const route = sketch.route();
  const of = sketch.earlier(
    name === 'redeem' || name === 'pay' || name === 'claim' || name === 'forge' ? 'offer' : 'buy',
  );
  const rail = sketch.rail();
  switch (name) {
    case 'buy':
      return {
        do: 'buy',
        id: sketch.newId('buy'),
        payer: sketch.payer(),
        route,
        rail,
        validFor: Number(sketch.validFor(rail)),
        validSince: random.chance(0.06) ? -20 : 600,
        ...sketch.circumstances(),
      };
    case 'again':
      return of ? { do: 'again', of, change: random.pick(CHANGES), route, ...sketch.circumstances() } : null;
    case 'race':
      return of
        ? {
            do: 'race',
            of,
            change: random.pick(CHANGES),
            route,
            times: random.between(2, 4),
            ...sketch.circumstances(),
          }
        : null;
    case 'offer':
      return { do: 'offer', id: sketch.newId('offer'), route, ...sketch.circumstances() };
    case 'pay':
      return of ? { do: 'pay', of } : null;
    case 'redeem':
      return of
        ? {
            do: 'redeem',
            of,
            change: random.pick(PROOF_CHANGES),
            route,
            times: random.pick([1, 1, 1, 2, 3]),
            ...sketch.circumstances(),
          }
        : null;
    case 'claim':
      return of ? { do: 'claim', of, from: sketch.client(), at: random.pick(sketch.instances) } : null;
    case 'forge':
      return of ? { do: 'forge', of, id: sketch.newId('offer'), ...sketch.circumstances() } : null;
    default:
      return null;
  }
}

function drawChain(name: MoveName, sketch: Sketch): Drawn | null {
  const { random } = sketch;
  const of = sketch.earlier('buy');
  const backMs = random.pick([null, 800, 3000, 8000]);
  switch (name) {
    case 'cancel':
    case 'spend elsewhere':
    case 'third party sends':
      return of ? { do: name, of, tipGwei: random.pick([0, 5]) } : null;
    case 'trap': {
      const trap = random.pick([
        'moves the balance',
        'moves the balance',
        'grows code',
        'turns the wallet',
        'cancels',
        'spends elsewhere',
        'is sent by a third party',
      ] as const);
      return { do: 'trap', payer: trap === 'turns the wallet' ? sketch.wallet() : sketch.payer(), trap, backMs };
    }
    case 'move balance':
      return { do: 'move balance', payer: sketch.payer(), backMs };
    case 'program':
      return {
        do: 'program',
        payer: random.chance(0.8) ? sketch.wallet() : sketch.rich(),
        trusting: random.chance(0.4),
        turnsWhen: random.pick(['never', 'paid gas', 'paid gas', 'the relayer sends', 'always', 'little gas']),
        turnsTo: random.pick(['no', 'no', 'burns all', 'burns most, then yes', 'burns some, then no']),
      };
    case 'shed code':
      return { do: 'shed code', payer: sketch.rich() };
    case 'deposit':
      return { do: 'deposit', payer: sketch.payer(), units: random.pick([500, 5000]) };
    case 'hand over':
      return of ? { do: 'hand over', of, to: random.pick(['the seller', 'elsewhere']) } : null;
    case 'batch':
      return { do: 'batch' };
    default:
      return null;
  }
}

/** The moves of a seed: drawn from its name alone. */
export function drawMoves(seed: string, scenario: Scenario, count: number): Move[] {
  const random = createRandom(`${seed} moves`);
  const sketch = createSketch(random, scenario);
  const moves: Move[] = [];
  while (moves.length < count) {
    const drawn = draw(random.weighted(scenario.weights), sketch);
    for (const move of drawn) {
      const pauseMs = move.pauseMs ?? (random.chance(0.3) ? random.int(4) : random.int(scenario.pauseMs));
      moves.push({ ...move, pauseMs } as Move);
    }
  }
  return moves.slice(0, count);
}
