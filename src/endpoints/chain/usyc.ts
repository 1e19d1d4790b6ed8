import { z } from 'zod';
import { defineEndpoint } from '../../catalogue/endpoint.ts';
import { readNewestNumber } from '../../chain/block.ts';
import { type Round, type Rounds, readOracle } from '../../chain/oracle.ts';
import { Unavailable } from '../../errors.ts';
import { formatUnits } from '../../lib/units.ts';
import { DAY_SECONDS, EXAMPLE_READ_AT, field, percentOf, readAt, readAtFields } from '../fields.ts';
import type { Sources } from '../sources.ts';

// The price of USYC by its oracle on the chain: the last round, the supply, and the growth that past rounds show.

/** A round comes each US business day: 35 are seven weeks, which reach back 30 days whatever the holidays. */
const MAX_ROUNDS = 35;
const [WEEK_DAYS, MONTH_DAYS] = [7, 30];

const growthField = (days: number) =>
  field
    .percent(
      `A year's growth at the pace from the newest round at least ${days} days older than the last one: (last / ` +
        'earlier)^(365 / days between the two) - 1; null when the history is too short',
    )
    .nullable();

const oldGrowth = field.percent('The same, under its old name').nullable();

const roundField = field.bigInteger("The oracle's round id; behind a proxy it holds the phase in its upper bits");

export const chainUsyc = defineEndpoint({
  path: '/chain/usyc',
  access: 'paid',
  onlyOn: 'lightning',
  priceUsd: '0.001',
  label: 'USYC price',
  summary:
    'Price of USYC by its oracle on the chain, its annualised growth over 7 and 30 days, the supply on the chain and ' +
    'the history of rounds, read at the latest block.',
  notFor: 'buying or redeeming USYC, or for other funds',
  tags: null,
  ofChain: true,
  params: z.object({}),
  result: z.strictObject({
    priceUsd: field.decimal('USD for one whole USYC, as the oracle published it last'),
    round: roundField,
    updatedAt: field.at('When it was published: about once a business day in the US'),
    growth: field.object('How fast the price rises, by past rounds; no promise', {
      annualised7dPercent: growthField(WEEK_DAYS),
      annualised30dPercent: growthField(MONTH_DAYS),
      annualised7d: oldGrowth,
      annualised30d: oldGrowth,
    }),
    supplyOnChain: field.orNull(
      'Total supply on this chain alone, in whole tokens; null when the token does not answer',
      field.decimal('Total supply of the token on this chain alone'),
    ),
    supplyUnit: z.literal('USYC').meta({ description: 'The unit of the supply' }),
    history: field.list(`At most ${MAX_ROUNDS} rounds, newest first, the last price included`, {
      round: roundField,
      at: field.at('When it was published'),
      usd: field.decimal('The price then'),
    }),
    contracts: field.object('What was read', {
      token: field.address('USYC'),
      oracle: field.address('Its price oracle'),
    }),
    ...readAtFields,
  }),
  example: {
    params: {},
    result: {
      priceUsd: '1.138264511832907115',
      round: '65',
      updatedAt: 1795122000,
      growth: {
        annualised7dPercent: '3.3921',
        annualised30dPercent: '3.4107',
        annualised7d: '3.3921',
        annualised30d: '3.4107',
      },
      supplyOnChain: '18250433.120977',
      supplyUnit: 'USYC',
      history: [
        { round: '65', at: 1795122000, usd: '1.138264511832907115' },
        { round: '64', at: 1795035600, usd: '1.138160273004418209' },
      ],
      contracts: {
        token: '0x8a5d989bbb96929f689b0200f435f53da42bf490',
        oracle: '0x4bc8d5acd3d040d2903dd9c5b7048520c6ff537a',
      },
      ...EXAMPLE_READ_AT,
    },
  },
  notConfigured: ({ usyc }) => (usyc === null ? notConfigured() : null),
  async run(_params, { chain, clock, usyc }: Pick<Sources, 'chain' | 'clock' | 'usyc'>, signal) {
    if (usyc === null) throw notConfigured();
    const block = await readNewestNumber(chain);
    const { decimals, rounds, supply } = await readOracle(chain, usyc, block, MAX_ROUNDS, { signal });
    const show = ({ id, at, answer }: Round) => ({ round: `${id}`, at, usd: formatUnits(answer, decimals) });
    const last = show(rounds[0]);
    const [week, month] = [annualisedGrowth(rounds, WEEK_DAYS), annualisedGrowth(rounds, MONTH_DAYS)];
    return {
      priceUsd: last.usd,
      round: last.round,
      updatedAt: last.at,
      growth: { annualised7dPercent: week, annualised30dPercent: month, annualised7d: week, annualised30d: month },
      supplyOnChain: supply && formatUnits(supply.units, supply.decimals),
      supplyUnit: 'USYC' as const,
      history: rounds.map(show),
      contracts: { token: usyc.token.toLowerCase(), oracle: usyc.oracle.toLowerCase() },
      ...readAt(block, { chain, clock }),
    };
  },
});

/** Long: the fault lasts until the operator changes the chain or the configuration. */
const RETRY_SECONDS = 3600;

function notConfigured(): Unavailable {
  return new Unavailable('usyc_unavailable', 'This service knows of no USYC on its chain.', RETRY_SECONDS);
}

const YEAR_DAYS = 365;
/** Nine digits are kept of a growth rate, which is a float with about 15. */
const FINENESS = 1e9;

/** Percent a year: (newest / earlier)^(365 / days between) - 1. Null when the rounds, newest first, are too young. */
export function annualisedGrowth(rounds: Rounds, days: number): string | null {
  const [newest] = rounds;
  const earlier = rounds.find(({ at }) => at <= newest.at - days * DAY_SECONDS);
  if (earlier === undefined) return null;
  const elapsedDays = (newest.at - earlier.at) / DAY_SECONDS;
  const growth = (Number(newest.answer) / Number(earlier.answer)) ** (YEAR_DAYS / elapsedDays) - 1;
  // An absurd price can give a growth that a float cannot hold.
  return Number.isFinite(growth * FINENESS) ? percentOf(BigInt(Math.round(growth * FINENESS)), BigInt(FINENESS)) : null;
}
