import type { Encoded } from '../http/encodings.ts';
import type { Clock } from '../lib/clock.ts';
import { encodePage } from './send.ts';

/** How long a page that is the same for all readers is sent again. So any number of readers cost one page per second. */
const KEEP_MS = 1000;

/** Makes a page at most once per second, and one at a time. After a failure the next request tries again. */
export function keepPage(clock: Clock, make: () => Promise<string>): () => Promise<Encoded> {
  let kept: { readonly until: number; readonly page: Promise<Encoded> } | null = null;
  return () => {
    const now = clock.nowMs();
    if (kept !== null && now < kept.until) return kept.page;
    const page = make().then(encodePage);
    const mine = { until: now + KEEP_MS, page };
    kept = mine;
    page.catch(() => {
      if (kept === mine) kept = null;
    });
    return page;
  };
}
