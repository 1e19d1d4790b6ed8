import { type AllSources, OTHERS, type Others } from '../catalogue/catalogue.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import type { Config } from '../config.ts';
import type { Clock } from '../lib/clock.ts';
import type { Common } from '../lib/common.ts';
import { SERVICE_VERSION } from '../lib/service.ts';
import type { SelfTestReads } from '../store/ports/stores.ts';
import { createUpstreams, type Opening } from '../upstream/client/client.ts';
import { createResolve, hostOf } from '../upstream/guard/guard.ts';
import { createPageReader } from '../upstream/web/page-reader.ts';
import { createWeb } from '../upstream/web/web.ts';
import type { Collecting } from './chain.ts';

// What endpoints read, and the client of all named sources. The time-outs of pages and of the Gateway are
// `WEB_TIMEOUT_MS` and `GATEWAY_TIMEOUT_MS`; the other sources have theirs beside them in `upstream/`.

interface SourcesParts {
  config: Config;
  chain: ChainClient;
  clock: Clock;
  collecting: Pick<Collecting, 'collector' | 'reads' | 'endpoints'>;
  selfTests: SelfTestReads;
  outgoing: ReturnType<typeof createOutgoing>;
}

export function openSources({ config, chain, clock, collecting, selfTests, outgoing }: SourcesParts): AllSources {
  const { collector, reads, endpoints } = collecting;
  const { health, floorWei } = config.collected;
  return {
    chain,
    chainName: config.network,
    clock,
    collector,
    reads,
    collected: {
      endpoints,
      health,
      floorWei,
      watched: config.watch.tokens,
      hasDistributor: config.watch.distributor !== null,
    },
    explorerUrl: config.network.explorerUrl,
    usdc: config.network.usdc,
    projectToken: config.projectToken,
    usyc: config.markets.usyc,
    selfTests: { results: selfTests, enabled: config.selfTest.privateKey !== null, origin: config.publicOrigin },
    web: outgoing.web,
    ...openOthers({ upstreams: outgoing.upstreams, config, clock }),
  };
}

function openOthers(opening: Opening): Others {
  const opened = Object.entries(OTHERS).map(([name, create]) => [name, create(opening)]);
  return Object.fromEntries(opened) as unknown as Others;
}

export function createOutgoing({ clock, log }: Common, settings: Config['web'], publicOrigin: string) {
  const userAgent = `percall/${SERVICE_VERSION} (+${settings.contactUrl ?? publicOrigin})`;
  const { testHosts, timeoutMs, hostPerMinute, pageWorkers } = settings;
  const dial = { resolve: createResolve(), ownHosts: new Set([hostOf(new URL(publicOrigin))]), testHosts };
  const upstreams = createUpstreams({ clock, userAgent, log, dial });
  const pages = createPageReader({ workers: pageWorkers });
  const web = createWeb({ clock, userAgent, measuredFrom: publicOrigin, timeoutMs, hostPerMinute, pages, dial });
  return {
    upstreams,
    web,
    dial,
    userAgent,
    close: async () => {
      await Promise.all([upstreams.close(), pages.close()]);
    },
  };
}
