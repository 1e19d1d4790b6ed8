import type { Random } from '../engine/random.ts';
import type { Scenario } from './scenario.ts';
import { settingsOf } from './settings.ts';

type Weights = Scenario['weights'];
type Kind = 'payment channels' | 'payment channels in a broken world' | 'payment channels at several instances';

const CALLS: Weights = {
  'open channel': 6,
  voucher: 44,
  'top up': 6,
  refund: 3,
  withdraw: 2,
  finalize: 2,
  wait: 5,
  'third party deposits': 1,
  'copy operation': 2,
  buy: 3,
  trap: 2,
  'move balance': 1,
  'two devices': 2,
  'a captured refund': 1,
  'a front-run deposit': 2,
  'a withdrawal in peace': 0.5,
};
const BROKEN: Weights = {
  provider: 3,
  stall: 1,
  'drop pending': 1,
  fee: 1,
  moody: 2,
  disk: 2,
  kill: 2,
  stop: 1,
  sleep: 2,
  leap: 1,
  'killed with a channel': 3,
  'a withdrawal while nobody looks': 0.5,
  token: 0.5,
  'relayer gas': 0.5,
  program: 1,
};

const WEIGHTS: Readonly<Record<Kind, Weights>> = {
  'payment channels': { ...CALLS, 'a poisoned row': 0.5 },
  'payment channels in a broken world': { ...CALLS, ...BROKEN, poison: 0.2 },
  'payment channels at several instances': {
    ...CALLS,
    'two devices': 5,
    'killed with a channel': 2,
    'a withdrawal while nobody looks': 0.3,
    kill: 1,
    stop: 1,
    sleep: 3,
    ledger: 3,
    provider: 1,
    'a sleeping leader': 1,
  },
};

/** A seed that sells from payment channels. */
export function drawChannelScenario(random: Random): Scenario {
  const name = random.weighted<Kind>({
    'payment channels': 4,
    'payment channels in a broken world': 4,
    'payment channels at several instances': 3,
  });
  const fair = name === 'payment channels';
  return {
    name,
    settler: 'relayer',
    gateway: false,
    channels: true,
    lightning: 'off',
    twin: false,
    perSecond: null,
    fair,
    instances: name.endsWith('several instances') ? random.between(2, 3) : 1,
    tools: random.chance(0.1),
    providers: random.between(1, 3),
    pauseMs: 500,
    honestEveryMs: fair ? 5000 : random.pick([0, 8000]),
    env: { ...settingsOf(random), ...channelSettings(random) },
    weights: WEIGHTS[name],
  };
}

/** Small sums and short times, so that claims, deposits and refunds happen within a seed. */
function channelSettings(random: Random): Record<string, string> {
  return {
    CHANNELS_MIN_DEPOSIT_USDC: random.pick(['0.01', '0.05']),
    CHANNELS_CLAIM_FROM_USDC: random.pick(['0.001', '0.005', '1']),
    CHANNELS_CLAIM_AFTER_SECONDS: random.pick(['5', '30', '440']),
  };
}
