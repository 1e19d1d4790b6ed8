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
    freshness,
    source: sourceSchema,
  }),
  cacheMs: KEEP_MS,
  version: untilWritten,
  example: { params: { window: '60', symbol: 'EURC' }, result: { ...EXAMPLE_FX, ...EXAMPLE_PROVENANCE } },
  async run({ window, symbol }, sources: Collected) {
    const token = watchedToken(sources.collected, symbol);
    const asked = windowOf(token, window, collectedUntil(sources));
    return {
      symbol: token.symbol,
      ...unitsOf(token.symbol),
      last: showLast(sources.reads.lastTrade(token.address)),
      window: showWindow(window, sources.reads.tradesIn(asked)),
      ...provenance(sources),
    };
  },
});
