import { systemClock } from '../../../src/lib/clock.ts';
import { createUpstreams } from '../../../src/upstream/client/http.ts';

/** The way out of a service under test that asks no facilitator anything. */
export function reachNobody() {
  return { upstreams: createUpstreams({ clock: systemClock, userAgent: 'percall/test' }), userAgent: 'percall/test' };
}
