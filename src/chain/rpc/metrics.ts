import { Counter, Gauge, type Registry } from 'prom-client';
import type { ChainClientOptions, OpenChainClient } from './client.ts';

type RpcCounters = Required<Pick<ChainClientOptions, 'onRequest' | 'onContradiction'>>;

/** Counts by host: a URL's path may hold a key. Contradictions begin at 0: Prometheus sees no increase from nothing. */
export function countRpc(registry: Registry, rpcUrls: readonly string[]): RpcCounters {
  const [labelNames, registers] = [['provider'], [registry]];
  const requests = new Counter({
    name: 'rpc_requests_total',
    help: 'HTTP requests to each RPC provider, those of the collector’s probe apart',
    labelNames,
    registers,
  });
  const contradictions = new Counter({
    name: 'rpc_contradictions_total',
    help: 'Answers of a provider that two others contradicted about the same block',
    labelNames,
    registers,
  });
  for (const url of rpcUrls) contradictions.inc({ provider: new URL(url).host }, 0);
  return {
    onRequest: (provider) => requests.inc({ provider }),
    onContradiction: (provider) => contradictions.inc({ provider }),
  };
}

/** Publishes how far each provider is from the agreed head, whether it is believed, and whether sales may begin. */
export function publishAgreement(registry: Registry, { agreed }: Pick<OpenChainClient, 'agreed'>): void {
  if (agreed.witnesses < 2) return;
  const registers = [registry];
  new Gauge({
    name: 'rpc_provider_ahead_blocks',
    help: 'Head of a provider less the head that two providers have reached; below zero where it is behind',
    labelNames: ['provider'],
    registers,
    collect() {
      this.reset();
      for (const { host, aheadBlocks } of agreed.providers())
        if (aheadBlocks !== null) this.set({ provider: host }, aheadBlocks);
    },
  });
  new Gauge({
    name: 'rpc_provider_trusted',
    help: '0 while two other providers contradict this one, or it is far from the agreed head, or does not answer',
    labelNames: ['provider'],
    registers,
    collect() {
      for (const { host, isPresent, isFar, isApart } of agreed.providers())
        this.set({ provider: host }, isPresent && !isFar && !isApart ? 1 : 0);
    },
  });
  new Gauge({
    name: 'rpc_agreement',
    help: '1 while two providers can confirm a payment; at 0 no sale over the chain begins',
    registers,
    collect() {
      this.set(agreed.whyUnconfirmed() === null ? 1 : 0);
    },
  });
}
