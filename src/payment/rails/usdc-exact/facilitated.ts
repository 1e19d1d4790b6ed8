import type { RemoteFacilitatorConfig } from '../../../config/rails.ts';
import type { Config } from '../../../config.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { Upstreams } from '../../../upstream/client/http.ts';
import type { Authorization } from '../../authorization.ts';
import type { ChainCheck } from '../../evm/chain-check.ts';
import type { Evidence } from '../../evm/evidence.ts';
import { GATEWAY_DOMAIN } from '../../evm/gateway-domain.ts';
import type { TokenWatch } from '../../evm/token-watch.ts';
import type { RailSettling, SettlingTerms } from '../../settler.ts';
import { openFacilitator } from '../../settlers/facilitator/open-facilitator.ts';
import { probeSupported } from '../../settlers/facilitator/probe.ts';
import { createServiceSettling } from '../../settlers/facilitator/service-settling.ts';
import { EXACT_EXTRA } from './describe.ts';

/** What settlement through a facilitator needs besides its terms. */
export interface FacilitatedNeeds {
  config: Pick<Config, 'network' | 'seller' | 'publicOrigin' | 'receiptPollMs' | 'settleWaitMs'>;
  evidence: Pick<Evidence, 'lookup'>;
  /** Reads payers; concurrent calls share a request. */
  check: Pick<ChainCheck, 'read'>;
  token: Pick<TokenWatch, 'check' | 'refusal'>;
  outgoing: { readonly upstreams: Upstreams; readonly userAgent: string };
  clock: Clock;
  log: { info(detail: object, message: string): void; warn(detail: object, message: string): void };
}

/** Never aborts: a shared read continues for the other callers. The settler's watch checks its own signal. */
const NEVER = new AbortController().signal;

/** The plain rail, settled by a facilitator. Nothing is sold over it while the token refuses transfers to the seller. */
export function openFacilitated(
  remote: RemoteFacilitatorConfig,
  needs: FacilitatedNeeds,
  { noteBroadcast }: SettlingTerms,
): RailSettling {
  const { config, evidence, check, token, clock, log } = needs;
  const client = openFacilitator(remote, needs);
  const isUsed = async (authorization: Authorization): Promise<boolean> =>
    (await check.read(authorization, NEVER)).used;
  const hasCode = async (authorization: Authorization): Promise<boolean> =>
    (await check.read(authorization, NEVER)).hasCode;
  const settling = createServiceSettling({
    ...{ client, evidence, isUsed, hasCode, usedBefore: null, extra: EXACT_EXTRA, noteBroadcast },
    ...{ config, token, clock, log },
  });
  const { settler } = settling;
  return {
    ...settling,
    settler: { ...settler, unavailable: () => settler.unavailable() ?? token.refusal() },
    // The Gateway's kind has the same scheme and network, but this rail does not sell for it.
    probe: () => probeSupported(client, config.network.caip2, (extra) => extra?.name !== GATEWAY_DOMAIN.name),
  };
}
