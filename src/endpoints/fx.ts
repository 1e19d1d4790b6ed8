import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { sourceSchema } from '../lib/source.ts';
import {
  type Collected,
  collectedUntil,
  EXAMPLE_PROVENANCE,
  freshness,
  KEEP_MS,
  provenance,
  untilWritten,
} from './freshness.ts';
import { fxExecution } from './fx-execution.ts';
import {
  EXAMPLE_FX,
  fxParams,
  fxUnits,
  lastTrade,
  showLast,
  showWindow,
  unitsOf,
  watchedToken,
  windowField,
  windowOf,
} from './fx-fields.ts';
import { detailField, paidDetail } from './paid-detail.ts';

const DETAIL = paidDetail(
  fxExecution,
  'what buys and sells of each size cost against their pool’s price, the venues, and how deep each pool is',
);

/** The rate at which a watched token was traded. */
export const fx = defineEndpoint({
  path: '/fx',
  access: 'free',
  label: 'Executed rate',
  summary: 'Last executed rate of a watched token against USDC, and a summary of the window.',
  params: fxParams,
  result: z.strictObject({
    symbol: z.string(),
    ...fxUnits,
    last: lastTrade,
    window: windowField,
    detail: detailField,
    freshness,
    source: sourceSchema,
  }),
  cacheMs: KEEP_MS,
  version: untilWritten,
  example: {
    params: { window: '60', symbol: 'EURC' },
    result: { ...EXAMPLE_FX, detail: DETAIL, ...EXAMPLE_PROVENANCE },
  },
  async run({ window, symbol }, sources: Collected) {
    const token = watchedToken(sources.collected, symbol);
    const asked = windowOf(token, window, collectedUntil(sources));
    return {
      symbol: token.symbol,
      ...unitsOf(token.symbol),
      last: showLast(sources.reads.lastTrade(token.address)),
      window: showWindow(window, sources.reads.tradesIn(asked)),
      detail: DETAIL,
      ...provenance(sources),
    };
  },
});
