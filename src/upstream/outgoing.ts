import type { WebConfig } from '../config/sources.ts';
import type { Clock } from '../lib/clock.ts';
import { SERVICE_VERSION } from '../lib/service.ts';
import { createUpstreams, type UpstreamLog } from './client/client.ts';
import { createResolve, hostOf } from './guard/guard.ts';
import { createPageReader } from './web/page-reader.ts';
import { createWeb } from './web/web.ts';

interface OutgoingOptions {
  readonly web: WebConfig;
  /** The public origin of this service. */
  readonly publicOrigin: string;
  readonly clock: Clock;
  readonly log: UpstreamLog;
}

/** Creates everything that sends requests to hosts other than the chain's: the client of the upstreams, and the one for third parties' pages. */
export function createOutgoing({ web: settings, publicOrigin, clock, log }: OutgoingOptions) {
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
