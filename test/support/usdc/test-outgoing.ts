import { systemClock } from '../../../src/lib/clock.ts';
import { createUpstreams } from '../../../src/upstream/client/client.ts';

/** The outgoing HTTP of a service under test that uses no facilitator. */
export function createTestOutgoing() {
  return { upstreams: createUpstreams({ clock: systemClock, userAgent: 'percall/test' }), userAgent: 'percall/test' };
}
