import type { createAheadClock } from '../ahead-clock.ts';
import type { Service } from './service.ts';
import { until } from './workers.ts';

/** A heartbeat is valid for 5 s. After this step the last one is always too old. */
const LEAST_MS = 7000;

/**
 * Moves the service's clock ahead, by LEAST_MS or more, and waits until the service settles. Where instances share a ledger, an instance settles only
 * once it has heard its next heartbeat. Until then it may still be ready, and it steps down if its last heartbeat was on its way when the clock moved.
 */
export async function elapse(service: Service, clock: ReturnType<typeof createAheadClock>, ms = LEAST_MS) {
  clock.aheadMs += ms;
  await until('it is ready and settles', async () => {
    const { status, body } = await service.get('/readyz');
    return status === 200 && JSON.parse(body).checks.instances?.leads !== false;
  });
}
