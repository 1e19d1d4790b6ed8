import type { Random } from '../engine/random.ts';
import type { Scenario } from './scenario.ts';

/** Gives some scenarios so small a daily gas budget that sales stop early in the day, for honest buyers too. */
export function withSmallGasBudget(scenario: Scenario, random: Random): Scenario {
  if (scenario.settler !== 'relayer' || scenario.instances > 1 || !scenario.fair || !random.chance(0.15))
    return scenario;
  const env = { ...scenario.env, RELAYER_DAILY_GAS_USDC: random.pick(['0.02', '0.04']) };
  return { ...scenario, fair: false, env, weights: { ...scenario.weights, stop: 5, leap: 0 } };
}

/** Settings that any operator may choose; short times, so that much happens within a seed. */
export function settingsOf(random: Random): Record<string, string> {
  return {
    SETTLE_WAIT_MS: random.pick(['3000', '6000', '20000']),
    RPC_TIMEOUT_MS: random.pick(['800', '3000']),
    HANDLER_TIMEOUT_MS: random.pick(['12000', '15000']),
    RECONCILE_INTERVAL_MS: random.pick(['2000', '5000']),
    RECEIPT_POLL_MS: random.pick(['200', '500']),
    PAYER_MAX_OPEN: random.pick(['2', '4', '32']),
    PAYER_FAILURES_PER_MINUTE: random.pick(['5', '20', '0']),
    REDELIVERY_MAX: random.pick(['2', '5']),
    REPLY_STORE_MB: '1',
    RELAYER_DAILY_FAILURES_USDC: '0.05',
  };
}
