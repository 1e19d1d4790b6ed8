import { z } from 'zod';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { entriesOn } from '../catalogue/paths.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import { parseAnswer, quantity } from '../chain/rpc/wire.ts';
import type { Config } from '../config.ts';
import { daysBefore, utcDay } from '../lib/calendar.ts';
import type { Clock } from '../lib/clock.ts';
import { formatCost, NATIVE_DECIMALS, USDC_DECIMALS } from '../lib/units.ts';
import type { RelayerSpendingStore } from '../store/ports/spending.ts';
import { RAILS, type RailList, railsSelling } from './open-rails.ts';
import { pricesAt } from './relayer/gas.ts';

// Which routes sell below the gas of their payment, so that selling at a loss is a choice:
// 1. what the relayer spent yesterday and today says what a unit of gas costs; else the newest block's base fee does;
// 2. these days say how much gas a payment takes, where the plain rail alone uses the relayer; else the rail does;
// 3. a route is named for each rail that sells it below the product.

/** The routes that one rail sells at a loss. */
export interface Losses {
  readonly rail: string;
  /** What the seller pays for one payment, in USDC, rounded up. */
  readonly costUsdc: string;
  readonly basis: 'the gas of the last day' | 'the current base fee';
  /** Each with its price: `rpc/health 0.0005`. */
  readonly routes: readonly string[];
}

interface LossesOptions {
  readonly config: Pick<Config, 'rails' | 'production'>;
  /** The catalogue as it is offered. */
  readonly catalogue: readonly Endpoint<never>[];
  readonly railList?: RailList;
  readonly spending: Pick<RelayerSpendingStore, 'spentOn'>;
  readonly chain: Pick<ChainClient, 'request'>;
  readonly clock: Clock;
}

interface Gas {
  /** What one unit costs, in wei. */
  readonly price: bigint;
  /** Units of a payment, where they were measured. */
  readonly ofPayment: bigint | null;
  readonly basis: Losses['basis'];
}

/** Wei of native USDC in a base unit of its ERC-20 face. */
const WEI_PER_UNIT = 10n ** BigInt(NATIVE_DECIMALS - USDC_DECIMALS);
const ADVICE =
  'these routes sell below the gas of a payment by this rail. Raise their PRICES, name them in ROUTES_OFF, offer the ' +
  'plain rail from a higher price on (EXACT_FROM_USD, EXACT=off), or let buyers pay over channels (CHANNELS=on)';

/** Finds the routes that are sold at a loss, rail by rail. Rejects when ledger and chain do not say what gas costs. */
export async function lossesOf(options: LossesOptions): Promise<Losses[]> {
  const { config, catalogue, railList = RAILS } = options;
  const { rails } = config;
  const sold = entriesOn(catalogue, 'paid').flatMap(({ path, price }) => (price ? [{ path, price }] : []));
  const paying = railList.map(({ info }) => info).filter(({ isOn, gasOfCall }) => isOn(rails) && gasOfCall?.(rails));
  const [only, ...others] = paying;
  if (!only) return [];
  const gas = await readGas(options);
  return paying.flatMap((info): Losses[] => {
    const measured = others.length === 0 ? gas.ofPayment : null;
    const wei = gas.price * (measured ?? info.gasOfCall?.(rails) ?? 0n);
    const below = sold.filter(
      ({ price }) => railsSelling(price.units, rails, railList).includes(info) && price.units * WEI_PER_UNIT < wei,
    );
    if (below.length === 0) return [];
    const routes = below.map(({ path, price }) => `${path.slice(1)} ${price.usd}`);
    return [{ rail: info.name, costUsdc: formatCost(wei), basis: gas.basis, routes }];
  });
}

/** Warns in production of each rail that sells routes at a loss, and says how to change it. Never rejects. */
export async function warnOfLosses(
  options: LossesOptions & { readonly log: { warn(fields: object, message: string): void } },
): Promise<void> {
  const { config, log } = options;
  if (!config.production) return;
  try {
    for (const losses of await lossesOf(options)) log.warn(losses, ADVICE);
  } catch (err) {
    log.warn({ err }, 'the price of gas is not known, so it is not known which routes sell below their gas');
  }
}

const newestBlock = z.object({ baseFeePerGas: quantity });

async function readGas({ spending, chain, clock }: LossesOptions): Promise<Gas> {
  const today = utcDay(clock.nowMs());
  const days = await Promise.all([spending.spentOn(daysBefore(today, 1)), spending.spentOn(today)]);
  const sum = (of: 'wei' | 'gas') => days.reduce((total, day) => total + day[of], 0n);
  const payments = days.reduce((total, day) => total + day.payments, 0);
  const [wei, gas] = [sum('wei'), sum('gas')];
  if (gas > 0n) {
    const ofPayment = payments > 0 ? gas / BigInt(payments) : null;
    return { price: wei / gas, ofPayment, basis: 'the gas of the last day' };
  }
  const raw = await chain.request('eth_getBlockByNumber', ['latest', false]);
  const { baseFeePerGas } = parseAnswer(newestBlock, raw, 'newest block');
  return { price: pricesAt(baseFeePerGas, 0n).gasPrice, ofPayment: null, basis: 'the current base fee' };
}
