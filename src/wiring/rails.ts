import { z } from 'zod';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { entriesOn } from '../catalogue/paths.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import type { ProviderStatus } from '../chain/rpc/trust.ts';
import { parseAnswer, quantity } from '../chain/rpc/wire.ts';
import type { Config } from '../config.ts';
import { type Clock, daysBefore, utcDay } from '../lib/clock.ts';
import type { Log } from '../lib/common.ts';
import { bytesToHex, hexToBytes } from '../lib/hex.ts';
import { formatCost, NATIVE_DECIMALS, USDC_DECIMALS } from '../lib/units.ts';
import { channelsInfo, openChannels } from '../payment/channels/rail.ts';
import type { Ledger } from '../payment/ledger.ts';
import type { RailInfo, RailName, UsdcRail } from '../payment/rail.ts';
import { pricesAt, type RelayerMetrics } from '../payment/relayer/gas.ts';
import type { Wallet } from '../payment/relayer/transactions.ts';
import type { SaleContext } from '../payment/sale.ts';
import type { RailProbe, SettlerStatus } from '../payment/settler.ts';
import type { Settling } from '../payment/settling.ts';
import type { ChainCheck, ContractBudget, TokenWatch } from '../payment/usdc/checks.ts';
import type { Evidence } from '../payment/usdc/evidence.ts';
import { exactInfo, openExact } from '../payment/usdc/exact.ts';
import { gatewayInfo, openGatewayRail } from '../payment/usdc/gateway.ts';
import { DOMAIN_SEPARATOR_CALLDATA, domainSeparator, USDC_DOMAIN } from '../payment/usdc/token.ts';
import type { RailStores, RelayerSpendingStore } from '../store/ports/stores.ts';
import type { Upstreams } from '../upstream/client/client.ts';

// The rails in USDC: their list, of which a configuration turns some on; whether payments can be taken by them; and a
// warning of routes that a rail sells below its gas.

/** Each rail declares its part of it. */
export interface RailKit extends RailStores {
  config: Config;
  sales: SaleContext;
  /** Its requests have the rank `settle`. */
  chain: ChainClient;
  /** Null where a facilitator settles and no relayer is configured. */
  wallet: Wallet | null;
  check: ChainCheck;
  contracts: ContractBudget;
  evidence: Evidence;
  token: TokenWatch;
  ledger: Ledger;
  /** Contracts of all rails whose payments share the payer's own balance of the token. */
  balanceContracts: readonly Uint8Array[];
  metrics?: RelayerMetrics | undefined;
  outgoing: { readonly upstreams: Upstreams; readonly userAgent: string };
  clock: Clock;
  log: Log;
}

export interface RailModule {
  readonly info: RailInfo;
  /** `status`: of the rail's settler, in this process or another. */
  open(kit: RailKit, status: SettlerStatus): UsdcRail;
}

/** In the order of a 402. The first is always on: `/readyz` needs it, and it checks what no other rail recognises. */
export type RailList = readonly [RailModule, ...RailModule[]];

export const RAILS: RailList = [
  { info: exactInfo, open: openExact },
  { info: gatewayInfo, open: openGatewayRail },
  { info: channelsInfo, open: openChannels },
];

/** `railOf`: the rail, on or off, whose payers sign for a contract; null for none. */
export function railNames(config: Config, list: RailList = RAILS) {
  const names = new Map(list.map(({ info }) => [info.contract(config)?.toLowerCase(), info.name]));
  return {
    rails: list.map(({ info }) => info.name),
    railOf: (contract: Uint8Array): RailName | null => names.get(bytesToHex(contract)) ?? null,
  };
}

/** Of the rails, on or off, that are so. */
export function contractsOf(
  config: Config,
  trait: 'takesFromBalance' | 'holdsEarnings',
  list: RailList = RAILS,
): readonly Uint8Array[] {
  return list.flatMap(({ info }) => {
    const contract = info[trait] ? info.contract(config) : null;
    return contract ? [hexToBytes(contract)] : [];
  });
}

/** How a payment came in, by the contract that its payer signed for. */
export function waysIn(config: Config, list: RailList = RAILS): (contract: Uint8Array) => string {
  const ways = new Map(list.map(({ info }) => [info.contract(config)?.toLowerCase(), info.way]));
  const [first] = list;
  const { way: unknown } = (list.find(({ info }) => info.isUnknownWhileOff) ?? first).info;
  return (contract) => ways.get(bytesToHex(contract)) ?? unknown;
}

const isOn =
  (rails: Config['rails']) =>
  ({ info }: RailModule): boolean =>
    info.isOn(rails);

function railsUnder(rails: Config['rails'], list: RailList = RAILS): readonly RailInfo[] {
  return list.filter(isOn(rails)).map(({ info }) => info);
}

/** `price`: USDC base units. */
export function railsSelling(price: bigint, rails: Config['rails'], list: RailList = RAILS): readonly RailInfo[] {
  return railsUnder(rails, list).filter(({ sells }) => sells?.(price, rails) ?? true);
}

/** `statusOf`: the status of a rail's settler, in this process or another. Throws where a row would name two rails. */
export function openRails(
  kit: RailKit,
  statusOf: (name: RailInfo['name']) => SettlerStatus,
  list: RailList = RAILS,
): readonly UsdcRail[] {
  const on = list.filter(isOn(kit.config.rails));
  const rails = on.map(({ info, open }) => open(kit, statusOf(info.name)));
  const known = new Set<string>();
  for (const [at, { info }] of on.entries()) {
    const contract = bytesToHex(rails[at]?.contract ?? new Uint8Array());
    if (known.has(contract) || info.contract(kit.config)?.toLowerCase() !== contract)
      throw new Error(`${info.name} has no contract of its own, by which its rows are known`);
    known.add(contract);
  }
  return rails;
}

interface ReadinessOptions {
  config: Pick<Config, 'network' | 'rails'>;
  chain: Pick<ChainClient, 'request' | 'agreed'>;
  ledger: Pick<Ledger, 'ping'>;
  settling: Pick<Settling, 'status' | 'probes' | 'detail'>;
  railList: RailList;
}

export interface Check {
  readonly ok: boolean;
  readonly detail?: string;
}

/**
 * Whether payments can be taken. `needed`: the ledger answers, the chain's USDC contract has the EIP-712 domain that
 * payers sign for, and the first rail can settle. `others`, further ways to pay, do not make the process unready.
 */
export function createPaymentsReadiness({ config, chain, ledger, settling, railList }: ReadinessOptions) {
  const [{ info: first }] = railList;
  const { usdc, chainId } = config.network;
  const separator = bytesToHex(domainSeparator(USDC_DOMAIN.name, USDC_DOMAIN.version, chainId, hexToBytes(usdc)));

  async function checkDomain(): Promise<void> {
    const call = { to: usdc, data: DOMAIN_SEPARATOR_CALLDATA };
    const answer = await chain.request<string>('eth_call', [call, 'latest']);
    if (answer !== separator) throw new Error('the USDC contract has another EIP-712 domain');
  }

  const probeOf = (service: string): RailProbe => settling.probes()[service] ?? { ok: false, detail: 'not asked yet' };

  /** A rail's check, or that of its service. Sales do not read it: they stop with the rail's settler. */
  function checkOf({ name, service }: RailInfo): { name: string; isNeeded: boolean; check: Check } {
    const remote = service(config.rails);
    if (remote?.isVital) return { name: remote.name, isNeeded: true, check: withoutSender(probeOf(remote.name)) };
    const probe: RailProbe = remote ? probeOf(remote.name) : { ok: true };
    const unproven = probe.ok ? null : `no successful probe: ${probe.detail}`;
    const reason = settling.status(name).unavailable() ?? unproven;
    return { name: remote?.name ?? name, isNeeded: false, check: settlementState(reason, null) };
  }

  return async () => {
    const ofRails = railsUnder(config.rails, railList)
      .filter((info) => info !== first || info.service(config.rails) !== null)
      .map(checkOf);
    const checksOf = (isNeeded: boolean) =>
      Object.fromEntries(ofRails.filter((one) => one.isNeeded === isNeeded).map(({ name, check }) => [name, check]));
    return {
      needed: {
        ledger: await checked(ledger.ping),
        usdc: await checked(checkDomain),
        settlement: settlementState(settling.status(first.name).unavailable(), settling.detail()),
        // One provider's word decides alone.
        ...(chain.agreed.witnesses > 1 && {
          rpc: settlementState(chain.agreed.whyUnconfirmed(), wordsOf(chain.agreed.providers())),
        }),
        ...checksOf(true),
      } as Record<string, Check>,
      others: checksOf(false),
    };
  };
}

function settlementState(shortage: string | null, note: string | null): Check {
  const detail = shortage ?? note;
  return { ok: shortage === null, ...(detail !== null && { detail }) };
}

/** What `/readyz` shows of a probe: not the sender's address, which only simulations use. */
function withoutSender({ ok, detail }: RailProbe): Check {
  return { ok, ...(detail !== undefined && { detail }) };
}

/** Which providers count for nothing now, and why; null while all count. */
function wordsOf(providers: readonly ProviderStatus[]): string | null {
  const words = providers.flatMap(({ host, isApart, isFar, isPresent, aheadBlocks }) => {
    if (isApart) return `${host} is set apart: two others contradict it`;
    if (isFar) return `${host} is ${Math.abs(aheadBlocks ?? 0)} blocks ${(aheadBlocks ?? 0) < 0 ? 'behind' : 'ahead'}`;
    return isPresent ? [] : `${host} does not answer`;
  });
  return words.length === 0 ? null : words.join('; ');
}

async function checked(look: () => Promise<void>): Promise<Check> {
  try {
    await look();
    return { ok: true };
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : 'failed' };
  }
}

// Selling below the gas of a payment shall be a choice. A unit of gas costs what the relayer paid for it yesterday and
// today, else the newest block's base fee. A payment takes these days' gas where one rail alone uses the relayer.

interface Losses {
  readonly rail: string;
  /** What one payment costs the seller, in USDC, rounded up. */
  readonly costUsdc: string;
  readonly basis: 'the gas of the last day' | 'the current base fee';
  /** Each with its price: `rpc/health 0.0005`. */
  readonly routes: readonly string[];
}

interface LossesOptions {
  readonly config: Pick<Config, 'rails' | 'production'>;
  readonly catalogue: readonly Endpoint<never>[];
  readonly railList?: RailList;
  readonly spending: Pick<RelayerSpendingStore, 'spentOn'>;
  readonly chain: Pick<ChainClient, 'request'>;
  readonly clock: Clock;
}

/** Wei of native USDC in a base unit of its ERC-20 interface. */
const WEI_PER_UNIT = 10n ** BigInt(NATIVE_DECIMALS - USDC_DECIMALS);

/** Rejects when neither ledger nor chain says what gas costs. */
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

interface Gas {
  /** What one unit costs, in wei. */
  readonly price: bigint;
  /** Units of a payment, where they were measured. */
  readonly ofPayment: bigint | null;
  readonly basis: Losses['basis'];
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

const ADVICE =
  'these routes sell below the gas of a payment by this rail. Raise their PRICES, name them in ROUTES_OFF, offer the ' +
  'plain rail from a higher price on (EXACT_FROM_USD, EXACT=off), or let buyers pay over channels (CHANNELS=on)';

/** Warns in production, and says how to change it. Never rejects. */
export async function warnOfLosses(options: LossesOptions & { readonly log: Pick<Log, 'warn'> }): Promise<void> {
  const { config, log } = options;
  if (!config.production) return;
  try {
    for (const losses of await lossesOf(options)) log.warn(losses, ADVICE);
  } catch (err) {
    log.warn({ err }, 'the price of gas is not known, so it is not known which routes sell below their gas');
  }
}
