import type { Config } from '../../../config.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { GatewayTransferStore } from '../../../store/ports/transfers.ts';
import type { Upstreams } from '../../../upstream/client/http.ts';
import type { TokenWatch } from '../../evm/token-watch.ts';
import type { Ledger } from '../../ledger.ts';
import type { OpenRail } from '../../rail.ts';
import { ALREADY_USED, type Intent, type RailSettling, type SettlingTerms } from '../../settler.ts';
import type { SupportedKind } from '../../settlers/facilitator/client.ts';
import { probeSupported } from '../../settlers/facilitator/probe.ts';
import { createRemoteSettling } from '../../settlers/facilitator/remote-settling.ts';
import type { RailStatus } from '../../settling.ts';
import { createGatewayBatches } from './batches.ts';
import { gatewayInfo } from './describe.ts';
import { GATEWAY_DOMAIN, isGatewayAccepted } from './payload.ts';
import { createGatewayRail } from './rail.ts';
import { type OpenGateway, openGateway } from './service.ts';

interface GatewayNeeds {
  config: Pick<Config, 'rails' | 'network' | 'publicOrigin' | 'handlerTimeoutMs' | 'receiptPollMs' | 'settleWaitMs'>;
  ledger: Pick<Ledger, 'openBefore'>;
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
  const settler = { unavailable: status.unavailable };
  return {
    info: gatewayInfo,
    recognises: isGatewayAccepted,
    purchase: createGatewayRail({ gateway, settler, ledger, network: network.caip2, times: config, clock }),
    openSettling: (terms) => openSettling(gateway, needs, terms),
  };
}

function openSettling(
  { client, evidence, extra, wallet }: OpenGateway,
  { config, token, transfers: store, clock, log }: GatewayNeeds,
  { noteBroadcast }: SettlingTerms,
): RailSettling {
  const usedBefore = async ({ authorization }: Intent): Promise<string | null> =>
    (await evidence.isUsed(authorization)) ? ALREADY_USED : null;
  const batches = createGatewayBatches({ client, store, clock, log });
  return {
    ...createRemoteSettling({
      ...{ client, evidence, isUsed: null, hasCode: null, usedBefore, extra, noteBroadcast },
      ...{ config, token, clock, log },
    }),
    refresh: batches.round,
    probe: () => probeSupported(client, (kind) => isOurs(kind, config.network.caip2, wallet)),
  };
}

function isOurs({ x402Version, scheme, network, extra }: SupportedKind, ours: string, wallet: string): boolean {
  const named = extra?.name === GATEWAY_DOMAIN.name && extra.version === GATEWAY_DOMAIN.version;
  const contract = typeof extra?.verifyingContract === 'string' ? extra.verifyingContract.toLowerCase() : '';
  return x402Version === 2 && scheme === 'exact' && network === ours && named && contract === wallet;
}
