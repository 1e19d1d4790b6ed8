import type { ChainClient } from '../chain/rpc/client.ts';
import type { Config } from '../config.ts';
import type { Sources } from '../endpoints/sources.ts';
import type { Clock } from '../lib/clock.ts';
import type { SelfTestReads } from '../store/ports/selftest.ts';
import { createNamesSources } from '../upstream/names/names-sources.ts';
import type { createOutgoing } from '../upstream/outgoing.ts';
import { createPackageSources } from '../upstream/packages/packages-sources.ts';
import type { Collecting } from './open-collecting.ts';

interface SourcesParts {
  config: Config;
  chain: ChainClient;
  clock: Clock;
  collecting: Pick<Collecting, 'collector' | 'reads' | 'endpoints'>;
  selfTests: SelfTestReads;
  outgoing: ReturnType<typeof createOutgoing>;
}

/** Creates the sources that the endpoints read. */
export function openSources({ config, chain, clock, collecting, selfTests, outgoing }: SourcesParts): Sources {
  const { collector, reads, endpoints } = collecting;
  const { health, floorWei } = config.collected;
  return {
    ...{ chain, chainName: config.network, clock, collector, reads },
    collected: {
      ...{ endpoints, health, floorWei, watched: config.watch.tokens },
      hasDistributor: config.watch.distributor !== null,
    },
    explorerUrl: config.network.explorerUrl,
    usdc: config.network.usdc,
    projectToken: config.projectToken,
    usyc: config.markets.usyc,
    selfTests: { results: selfTests, enabled: config.selfTest.privateKey !== null, origin: config.publicOrigin },
    web: outgoing.web,
    packages: createPackageSources(outgoing.upstreams, config.packages),
    ...createNamesSources(outgoing.upstreams, config.names, clock),
  };
}
