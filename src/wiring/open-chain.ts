import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { createChainClient, type OpenChainClient } from '../chain/rpc/client.ts';
import { countRpc, publishAgreement } from '../chain/rpc/metrics.ts';
import type { Config } from '../config.ts';

/**
 * Opens the client for the chain with its metrics, and says in one line what the number of its providers means. It
 * sends nothing yet.
 */
export function openChain(config: Config, registry: Registry, log: Logger): OpenChainClient {
  const { network, rpcTimeoutMs: timeoutMs, collector } = config;
  const chain = createChainClient({
    rpcUrls: network.rpcUrls,
    chainId: network.chainId,
    genesisHash: collector.genesisHash ?? undefined,
    ...countRpc(registry, network.rpcUrls),
    timeoutMs,
    log,
  });
  publishAgreement(registry, chain);
  const { witnesses } = chain.agreed;
  if (witnesses === 1) log.warn('one RPC provider: its word alone decides that you were paid');
  else if (witnesses === 2) log.info('two RPC providers: a sale needs both; with three, one may be down or lie');
  return chain;
}
