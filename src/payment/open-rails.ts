import type { ChainClient } from '../chain/rpc/client.ts';
import type { RailsConfig } from '../config/rails.ts';
import type { Config } from '../config.ts';
import type { Clock } from '../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../lib/hex.ts';
import type { ChannelStore } from '../store/ports/channels.ts';
import type { SettledReads } from '../store/ports/settled.ts';
import type { RelayerSpendingStore } from '../store/ports/spending.ts';
import type { GatewayTransferStore } from '../store/ports/transfers.ts';
import type { Upstreams } from '../upstream/client/http.ts';
import { channelsInfo, openChannels } from './channels/rail.ts';
import type { Ledger } from './ledger.ts';
import type { OpenRail, RailInfo, RailName } from './rail.ts';
import type { RelayerMetrics } from './relayer/metrics.ts';
import type { Wallet } from './relayer/transactions.ts';
import type { RailStatus } from './settling.ts';
import type { ChainCheck, ContractBudget } from './usdc/checks.ts';
import type { Evidence } from './usdc/evidence.ts';
import { exactInfo, openExact } from './usdc/exact.ts';
import { gatewayInfo, openGatewayRail } from './usdc/gateway.ts';
import type { TokenWatch } from './usdc/token-watch.ts';

/** Everything that a rail may need. Each rail declares which part it needs. */
export interface RailKit {
  config: Config;
  /** Its requests have the rank `settle`. */
  chain: ChainClient;
  /** Null where a facilitator settles and no relayer is configured. */
  wallet: Wallet | null;
  check: ChainCheck;
  contracts: ContractBudget;
  evidence: Evidence;
  token: TokenWatch;
  ledger: Ledger;
  /** The contracts of all rails whose payments share the payer's own balance of the token. */
  balanceContracts: readonly Uint8Array[];
  channels: ChannelStore;
  /** What our relayer has spent, day by day. */
  spending: RelayerSpendingStore;
  /** What was earned. */
  settled: SettledReads;
  metrics?: RelayerMetrics | undefined;
  /** The transfers of payments over the Gateway. */
  transfers: GatewayTransferStore;
  /** How remote services are reached. */
  outgoing: { readonly upstreams: Upstreams; readonly userAgent: string };
  clock: Clock;
  log: {
    info(detail: object, message: string): void;
    warn(detail: object, message: string): void;
    error(detail: object, message: string): void;
  };
}

/** What a rail's folder brings to the list. */
export interface RailModule {
  readonly info: RailInfo;
  /** `status` is the status of the rail's settler, in this process or another. */
  open(kit: RailKit, status: RailStatus): OpenRail;
}

/**
 * Rails in the order in which a 402 lists them. The first is always on, so `/readyz` checks the settler of this rail. It also checks the payments that
 * no other rail recognises.
 */
export type RailList = readonly [RailModule, ...RailModule[]];

/** Every rail in USDC. */
export const RAILS: RailList = [
  { info: exactInfo, open: openExact },
  { info: gatewayInfo, open: openGatewayRail },
  { info: channelsInfo, open: openChannels },
];

/** The names of the list's rails, and of the rail whose payers sign for a contract, also where it is off; null for none of the list. */
export function railNames(config: Config, list: RailList = RAILS) {
  const names = new Map(list.map(({ info }) => [info.contract(config)?.toLowerCase(), info.name]));
  return {
    rails: list.map(({ info }) => info.name),
    railOf: (contract: Uint8Array): RailName | null => names.get(bytesToHex(contract)) ?? null,
  };
}

/** The contracts of the list's rails whose payments share the payer's own balance of the token, also of rails that are off. */
export function balanceContracts(config: Config, list: RailList = RAILS): readonly Uint8Array[] {
  return list.flatMap(({ info }) => {
    const contract = info.takesFromBalance ? info.contract(config) : null;
    return contract ? [hexToBytes(contract)] : [];
  });
}

/** Returns how a payment came in, by the contract that its payer signed for. The Gateway's wallet is not known where the Gateway is off. */
export function waysIn(config: Config): (contract: Uint8Array) => 'usdc' | 'channels' | 'gateway' {
  const [token, channels] = [exactInfo.contract(config)?.toLowerCase(), channelsInfo.contract(config)];
  return (contract) => {
    const signedFor = bytesToHex(contract);
    if (signedFor === token) return 'usdc';
    return signedFor === channels ? 'channels' : 'gateway';
  };
}

const isOn =
  (rails: RailsConfig) =>
  ({ info }: RailModule): boolean =>
    info.isOn(rails);

/** The rails of a list that a configuration turns on, unopened. */
export function railsUnder(rails: RailsConfig, list: RailList = RAILS): readonly RailInfo[] {
  return list.filter(isOn(rails)).map(({ info }) => info);
}

/** The rails of a list that sell a route of this price, in USDC base units, under a configuration. */
export function railsSelling(price: bigint, rails: RailsConfig, list: RailList = RAILS): readonly RailInfo[] {
  return railsUnder(rails, list).filter(({ sells }) => sells?.(price, rails) ?? true);
}

/** Opens the rails of a list that are on. `statusOf` returns the status of a rail's settler, in this process or another. */
export function openRails(
  kit: RailKit,
  statusOf: (name: RailInfo['name']) => RailStatus,
  list: RailList = RAILS,
): readonly OpenRail[] {
  return list.filter(isOn(kit.config.rails)).map(({ info, open }) => open(kit, statusOf(info.name)));
}
