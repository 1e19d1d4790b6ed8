import { createRandom, type Random } from '../engine/random.ts';
import { drawChannelScenario } from './channel-scenarios.ts';
import type { Scenario } from './scenario.ts';
import { settingsOf, withSmallGasBudget } from './settings.ts';

type Weights = Scenario['weights'];

const PRESENTING: Weights = {
  buy: 26,
  again: 22,
  race: 6,
  wait: 6,
  'move balance': 2,
  cancel: 2,
  'spend elsewhere': 2,
};
const HOSTILE: Weights = { ...PRESENTING, trap: 6, program: 5, 'third party sends': 4, 'shed code': 1 };
const BROKEN: Weights = {
  provider: 4,
  stall: 1,
  'drop pending': 1,
  fee: 1,
  source: 2,
  moody: 2,
  disk: 2,
  kill: 2,
  stop: 1,
  sleep: 2,
  leap: 1,
};

const LIGHTNING: Weights = { offer: 16, pay: 12, redeem: 20, claim: 4, race: 3, wait: 4, price: 1 };

/** What is common to all. */
const BASE: Omit<Scenario, 'name' | 'weights'> = {
  settler: 'relayer',
  gateway: false,
  lightning: 'off',
  instances: 1,
  twin: false,
  tools: false,
  providers: 2,
  perSecond: null,
  fair: false,
  honestEveryMs: 0,
  env: {},
  pauseMs: 600,
};

type Draw = (random: Random) => Omit<Scenario, 'name'>;

const SCENARIOS: Record<string, { weight: number; draw: Draw }> = {
  'the relayer and a hostile buyer': {
    weight: 16,
    draw: (random) => ({
      ...BASE,
      tools: random.chance(0.15),
      fair: true,
      honestEveryMs: 4000,
      weights: {
        ...HOSTILE,
        'dear for cheap': 3,
        griefing: 2,
        'many griefers': 1,
        'a public authorization': 2,
        'short validity': 2,
        leap: 1,
      },
    }),
  },
  'the relayer in a broken world': {
    weight: 20,
    draw: (random) => ({
      ...BASE,
      providers: random.between(1, 3),
      honestEveryMs: random.pick([0, 5000]),
      env: { RELAYER_DAILY_GAS_USDC: random.pick(['off', 'off', '0.04']) },
      weights: { ...HOSTILE, ...BROKEN, 'killed in the middle': 3, 'a paused token': 1, 'relayer gas': 1 },
    }),
  },
  'a facilitator settles': {
    weight: 14,
    draw: (random) => {
      const fair = random.chance(0.4);
      return {
        ...BASE,
        settler: random.chance(0.75) ? 'facilitator' : 'circle',
        fair,
        honestEveryMs: 3000,
        weights: {
          ...HOSTILE,
          ...(!fair && { facilitator: 4, kill: 2 }),
          'doomed wallets': 2,
          'a public authorization': 1,
          'dear for cheap': 1,
        },
      };
    },
  },
  'the Gateway beside the relayer': {
    weight: 14,
    draw: (random) => {
      const fair = random.chance(0.5);
      return {
        ...BASE,
        gateway: true,
        twin: random.chance(0.3),
        fair,
        honestEveryMs: 3000,
        weights: {
          ...PRESENTING,
          'hand over': 4,
          batch: 1,
          deposit: 1,
          'nonces elsewhere': 2,
          'two ledgers': 2,
          'dear for cheap': 2,
          ...(!fair && { gateway: 4, kill: 2 }),
        },
      };
    },
  },
  Lightning: {
    weight: 16,
    draw: (random) => {
      const lightning = random.chance(0.7) ? 'own' : 'shared';
      return {
        ...BASE,
        lightning,
        tools: random.chance(0.2),
        honestEveryMs: random.pick([0, 4000]),
        weights: {
          ...LIGHTNING,
          node: 3,
          source: 2,
          kill: 1,
          sleep: 1,
          disk: 2,
          moody: 2,
          'redeemed twice': 4,
          'claimed elsewhere': 2,
          // A node of the seller's own makes invoices for nobody else.
          ...(lightning === 'shared' && { forge: 3, 'forged proofs': 3 }),
        },
      };
    },
  },
  'several instances': {
    weight: 16,
    draw: (random) => ({
      ...BASE,
      instances: random.chance(0.7) ? 2 : 3,
      gateway: random.chance(0.2),
      lightning: random.chance(0.25) ? 'own' : 'off',
      honestEveryMs: 6000,
      weights: {
        ...HOSTILE,
        kill: 1,
        stop: 1,
        sleep: 4,
        ledger: 3,
        provider: 2,
        'killed in the middle': 2,
        'a sleeping leader': 3,
        offer: 2,
        pay: 2,
        redeem: 3,
      },
    }),
  },
  'a flood': {
    weight: 4,
    draw: (random) => ({
      ...BASE,
      providers: 4,
      perSecond: 2,
      fair: true,
      honestEveryMs: 1000,
      pauseMs: 400,
      lightning: random.chance(0.35) ? 'own' : 'off',
      // As an operator finds them, but for what the failures may cost.
      env: Object.fromEntries(
        Object.keys(settingsOf(random)).map((key) => [key, key.includes('FAILURES_USDC') ? '0.05' : '']),
      ),
      weights: { flood: 3, buy: 14, again: 8, wait: 20, griefing: random.pick([0, 1]) },
    }),
  },
};

/** Of so many seeds one sells from payment channels. */
const CHANNELS_SHARE = 0.25;

/** Has calls fail in public in some scenarios. The moves of all others stay as they were. */
function withFailingCalls(scenario: Scenario, random: Random): Scenario {
  const isMeant = scenario.name === 'the relayer and a hostile buyer' && random.chance(0.3);
  // Calls that fail for want of data fail for honest buyers too.
  const weights = { ...scenario.weights, 'the same call fails in public': 3 };
  return isMeant ? { ...scenario, fair: false, weights } : scenario;
}

/** The scenario of a seed. */
export function drawScenario(seed: string): Scenario {
  const channels = createRandom(`${seed} channels`);
  if (channels.chance(CHANNELS_SHARE)) return drawChannelScenario(channels);
  const random = createRandom(`${seed} scenario`);
  const weights = Object.fromEntries(Object.entries(SCENARIOS).map(([name, { weight }]) => [name, weight]));
  const name = random.weighted(weights);
  const drawn = (SCENARIOS[name] as (typeof SCENARIOS)[string]).draw(random);
  // `purse` is a part of the seed. Another word would change every scenario.
  const scenario = withSmallGasBudget(
    { ...drawn, name, env: { ...settingsOf(random), ...drawn.env } },
    createRandom(`${seed} purse`),
  );
  return withFailingCalls(scenario, createRandom(`${seed} failing calls`));
}
