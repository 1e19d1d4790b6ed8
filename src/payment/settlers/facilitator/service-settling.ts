import type { Config } from '../../../config.ts';
import type { TokenWatch } from '../../evm/token-watch.ts';
import type { SettlingRail, SettlingTerms } from '../../settler.ts';
import { createRemoteSettler } from './remote-settler.ts';

type RemoteSettlerOptions = Parameters<typeof createRemoteSettler>[0];

interface ServiceSettlingOptions
  extends Pick<SettlingTerms, 'noteBroadcast'>,
    Pick<RemoteSettlerOptions, 'client' | 'evidence' | 'isUsed' | 'hasCode' | 'usedBefore' | 'clock' | 'log'> {
  /** `extra` of the requirements that are sent to the service. */
  extra: Record<string, unknown>;
  config: Pick<Config, 'network' | 'publicOrigin' | 'receiptPollMs' | 'settleWaitMs'>;
  token: Pick<TokenWatch, 'check'>;
}

/** A rail's settlement by a remote service: a facilitator or the Gateway. */
export function createServiceSettling({ extra, config, token, ...settler }: ServiceSettlingOptions): SettlingRail {
  const { network, publicOrigin, receiptPollMs, settleWaitMs } = config;
  return {
    evidence: settler.evidence,
    ownOnly: settler.usedBefore !== null,
    settler: createRemoteSettler({
      ...settler,
      terms: { network: network.caip2, usdc: network.usdc, extra, publicOrigin },
      onUnsettled: () => void token.check(),
      pollMs: receiptPollMs,
      watchMs: settleWaitMs,
      stallMs: settleWaitMs,
    }),
  };
}
