import type { ChainClient } from '../../../chain/rpc/client.ts';
import type { Config } from '../../../config.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { GatewayTransferStore } from '../../../store/ports/transfers.ts';
import type { Upstreams } from '../../../upstream/client/http.ts';
import { GATEWAY_DOMAIN } from '../../evm/gateway-domain.ts';
import type { TokenWatch } from '../../evm/token-watch.ts';
import type { Ledger } from '../../ledger.ts';
import type { OpenRail } from '../../rail.ts';
import { ALREADY_USED, type Intent, type RailSettling, type SettlingTerms } from '../../settler.ts';
import type { SupportedKind } from '../../settlers/facilitator/client.ts';
import { probeSupported } from '../../settlers/facilitator/probe.ts';
import { createServiceSettling } from '../../settlers/facilitator/service-settling.ts';
import type { RailStatus } from '../../settling.ts';
import { createGatewayBatches } from './batches.ts';
import { gatewayInfo } from './describe.ts';
import { createGatewayBooks } from './gateway-books.ts';
import { createGatewayRail } from './rail.ts';
import { isGatewayAccepted } from './requirement.ts';
import { type OpenGateway, openGateway } from './service.ts';

interface GatewayNeeds {
  config: Pick<Config, 'rails' | 'network' | 'publicOrigin' | 'handlerTimeoutMs' | 'receiptPollMs' | 'settleWaitMs'>;
  /** Reads the transactions of batches. */
  chain: Pick<ChainClient, 'batch'>;
  ledger: Pick<Ledger, 'openBefore' | 'get'>;
  token: Pick<TokenWatch, 'check'>;
  /** The transfers of payments over the Gateway. */
  transfers: GatewayTransferStore;
  outgoing: { readonly upstreams: Upstreams };
  clock: Clock;
  log: {
    info(detail: object, message: string): void;
    warn(detail: object, message: string): void;
    error(detail: object, message: string): void;
  };
}

/** Opens the Gateway's rail: authorizations of the Gateway Wallet, settled by the Gateway in batches. */
export function openGatewayRail(needs: GatewayNeeds, status: RailStatus): OpenRail {
  const { config, ledger, outgoing, clock } = needs;
  const { network, publicOrigin, rails } = config;
  if (!rails.gateway) throw new Error('the Gateway is off');
  const gateway = openGateway(rails.gateway, { network, publicOrigin, upstreams: outgoing.upstreams, clock });
  return {
    info: gatewayInfo,
    recognises: isGatewayAccepted,
    purchase: createGatewayRail({
      gateway,
      status: { unavailable: status.unavailable },
      ledger,
      network: network.caip2,
      times: config,
      clock,
    }),
    openSettling: (terms) => openSettling(gateway, needs, terms),
  };
}

function openSettling(
  { client, evidence, extra, wallet }: OpenGateway,
  { config, chain, ledger, token, transfers: store, clock, log }: GatewayNeeds,
  { noteBroadcast }: SettlingTerms,
): RailSettling {
  const usedBefore = async ({ authorization }: Intent): Promise<string | null> =>
    (await evidence.isUsed(authorization)) ? ALREADY_USED : null;
  const batches = createGatewayBatches({ client, store, clock, log });
  return {
    ...createServiceSettling({
      ...{ client, evidence, isUsed: null, hasCode: null, usedBefore, extra, noteBroadcast },
      ...{ config, token, clock, log },
    }),
    refresh: batches.round,
    books: createGatewayBooks({ chain, transfers: store, ledger, usdc: config.network.usdc, wallet }),
    probe: () => probeSupported(client, config.network.caip2, (extra) => isGatewayExtra(extra, wallet)),
  };
}

/** Whether `extra` of a kind names the Gateway's domain, with the contract that our payers sign for. */
function isGatewayExtra(extra: SupportedKind['extra'], wallet: string): boolean {
  const named = extra?.name === GATEWAY_DOMAIN.name && extra.version === GATEWAY_DOMAIN.version;
  const contract = typeof extra?.verifyingContract === 'string' ? extra.verifyingContract.toLowerCase() : '';
  return named && contract === wallet;
}
