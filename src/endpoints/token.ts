import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { readTokens } from '../chain/erc20.ts';
import type { TokenEvent } from '../collector/store/token-events.ts';
import { formatUnits, USDC_DECIMALS } from '../lib/units.ts';
import { DAY_SECONDS, field } from './fields.ts';
import { type Collected, collectedUntil, EXAMPLE_PROVENANCE, provenance, provenanceFields } from './freshness.ts';
import { fxUnits, lastTrade, showLast, unitsOf } from './fx/fields.ts';
import type { Sources } from './sources.ts';

const RECENT = 20;

const sinceField = field.objectOrNull(
  'From where on the sums count; earlier events are not in them. null before the first block',
  {
    block: field.count('The first block that was searched'),
    at: field.at('Its time, or its hour once older than the retention').nullable(),
  },
);

const EXAMPLE_SINCE = { block: 31731601, at: 1794940001 };

type ProjectSources = Collected & Pick<Sources, 'projectToken'>;

/** An answer sums up every burn and payout, of which there are few an hour. */
const TOKEN_KEEP_MS = 5000;

export const token = defineEndpoint({
  path: '/token',
  access: 'free',
  label: 'Project token',
  summary: 'Buyback burns, USDC payouts and executed price of the project token, read from the chain.',
  notFor: 'other tokens than the project’s own',
  tags: null,
  ofChain: true,
  params: z.object({}),
  result: z.strictObject({
    token: field.objectOrNull('The project token; null when none is configured', {
      address: field.address('The contract'),
      symbol: field.textOrNull('As the contract says; null when it says none'),
      decimals: field.integerOrNull('null when the contract does not say'),
    }),
    burned: field.objectOrNull(
      'What was sent to a burn address, as far as collected; amounts in whole tokens, null without decimals',
      {
        total: field.decimal('In whole tokens').nullable(),
        last24h: field.decimal('In whole tokens').nullable(),
        unit: field.textOrNull('The unit of both: the token’s symbol; null when it says none'),
        events: z.int().nonnegative(),
        since: sinceField,
      },
    ),
    payouts: field.objectOrNull("The distributor's USDC payouts, as far as collected; null when none is configured", {
      totalUsdc: field.usdc('In USDC'),
      last24hUsdc: field.usdc('In USDC'),
      recipients: field.count('Distinct accounts'),
      since: sinceField,
    }),
    price: lastTrade,
    rateUnit: fxUnits.rateUnit.nullable(),
    recent: field.list(`The last ${RECENT} burns and payouts, newest first`, {
      kind: z.enum(['burn', 'payout']),
      amount: field.decimal('Whole tokens of a burn, USDC of a payout').nullable(),
      unit: field.textOrNull('USDC, or the token’s symbol'),
      account: field.address('Who burned, or who was paid'),
      block: z.int().nonnegative(),
      at: field.at('Time of the block'),
      transaction: field.hash('The transaction'),
    }),
    note: field.textOrNull('What is not configured; null when everything is'),
    ...provenanceFields,
  }),
  cacheMs: TOKEN_KEEP_MS,
  example: {
    params: {},
    result: {
      token: { address: '0x1ca1100000000000000000000000000000000001', symbol: 'CALL', decimals: 18 },
      burned: { total: '182733.5', last24h: '912.25', unit: 'CALL', events: 214, since: EXAMPLE_SINCE },
      payouts: { totalUsdc: '40211.482', last24hUsdc: '310.5', recipients: 87, since: EXAMPLE_SINCE },
      price: { rate: '0.05012', at: 1795199395, block: 32249990, transaction: `0x${'3e'.repeat(32)}` },
      rateUnit: 'USDC/CALL',
      recent: [
        {
          kind: 'burn',
          amount: '4.25',
          unit: 'CALL',
          account: '0x50a2b0b577ec24d7ce1aed372a8a6fd14ce1be57',
          block: 32249990,
          at: 1795199395,
          transaction: `0x${'3e'.repeat(32)}`,
        },
      ],
      note: null,
      ...EXAMPLE_PROVENANCE,
    },
  },
  async run(_params, sources: ProjectSources, signal) {
    const { reads, collected } = sources;
    const described = await describeToken(sources, signal);
    const decimals = described?.decimals ?? null;
    const yesterday = collectedUntil(sources) - DAY_SECONDS;
    const whole = (amount: bigint) => (decimals === null ? null : formatUnits(amount, decimals));
    const since = reads.searchedSince();
    const burns = reads.tokenTotals('burn', yesterday);
    const payouts = reads.tokenTotals('payout', yesterday);
    return {
      token: described,
      burned: described && {
        total: whole(burns.total),
        last24h: whole(burns.recent),
        unit: described.symbol,
        events: burns.events,
        since,
      },
      payouts: collected.hasDistributor
        ? {
            totalUsdc: formatUnits(payouts.total, USDC_DECIMALS),
            last24hUsdc: formatUnits(payouts.recent, USDC_DECIMALS),
            recipients: payouts.accounts,
            since,
          }
        : null,
      price: described && showLast(reads.lastTrade(described.address)),
      rateUnit: described?.symbol ? unitsOf(described.symbol).rateUnit : null,
      recent: reads.tokenEvents(RECENT).map((event) => ({
        ...event,
        amount: amountOf(event, whole),
        unit: event.kind === 'burn' ? (described?.symbol ?? null) : 'USDC',
      })),
      note: noteOf(described !== null, collected.hasDistributor),
      ...provenance(sources),
    };
  },
});

async function describeToken({ chain, projectToken, collector }: ProjectSources, signal: AbortSignal) {
  if (projectToken === null) return null;
  const address = projectToken.toLowerCase() as `0x${string}`;
  const { head } = collector.status();
  const [answer] = head === null ? [] : await readTokens(chain, [address], head.number, { signal });
  return { address, symbol: answer?.symbol ?? null, decimals: answer?.decimals ?? null };
}

function amountOf({ kind, amount }: TokenEvent, whole: (amount: bigint) => string | null): string | null {
  return kind === 'burn' ? whole(amount) : formatUnits(amount, USDC_DECIMALS);
}

const NOTES = {
  nothing: 'No project token and no distributor are configured: there is nothing to read.',
  noToken: 'No project token is configured: burns and price are not known.',
  noDistributor: 'No distributor is configured: payouts are not known.',
};

function noteOf(hasToken: boolean, hasDistributor: boolean): string | null {
  if (hasToken) return hasDistributor ? null : NOTES.noDistributor;
  return hasDistributor ? NOTES.noToken : NOTES.nothing;
}
