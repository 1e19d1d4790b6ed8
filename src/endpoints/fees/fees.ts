import { z } from 'zod';
import { defineEndpoint } from '../../catalogue/endpoint.ts';
import type { LatestFee } from '../../collector/store/fees.ts';
import { percentilesIn } from '../../lib/percentile.ts';
import { formatGwei } from '../../lib/units.ts';
import { DAY_SECONDS, detailField, field, paidDetail, percentOf } from '../fields.ts';
import {
  type Collected,
  collectedUntil,
  EXAMPLE_PROVENANCE,
  keptUntilWritten,
  lastHours,
  nothingYet,
  provenance,
  provenanceFields,
} from '../freshness.ts';
import {
  baseFee,
  costOfGas,
  EXAMPLE_SUGGESTED,
  floorOf,
  nextBaseFee,
  nextFeeOf,
  showBaseFee,
  showNextBaseFee,
  showUtilisation,
  suggestedFees,
  suggestFees,
  tipsOf,
  utilisation,
} from './fields.ts';
import { feesForecast } from './forecast.ts';

// The base fee now, in the next block and over the last 24 hours, the floor, what a wallet should offer.

/** Gas of a plain value transfer (Ethereum yellow paper, appendix G: Gtransaction). */
const NATIVE_GAS = 21_000;
/** Gas of a USDC transfer on Arc, used until one was measured (`arc.md` of the project's facts, 1.9). */
const ERC20_GAS = 51_000;

const DETAIL = paidDetail(
  feesForecast,
  'the band of 24 hours, the utilisation trend, an outlook to one hour by the chain’s own fee rule, and the cost of ' +
    'each type of operation',
);

export const fees = defineEndpoint({
  path: '/fees',
  access: 'free',
  label: 'Fees',
  summary: 'Base fee now, in the next block and over the last hours, the floor, and what a transfer costs.',
  notFor: 'gas prices of Ethereum or of other chains',
  tags: null,
  ofChain: true,
  params: z.object({}),
  result: z.strictObject({
    baseFee,
    nextBaseFee,
    floorGwei: field.orNull(
      "The chain's lowest base fee in gwei: the lowest of the last 24 hours, unless the operator states it",
      field.decimal('In gwei'),
    ),
    aboveFloorGwei: field.orNull(
      'How far the base fee lies above the floor, in gwei; 0: at the floor',
      field.decimal('In gwei'),
    ),
    aboveFloorPercent: field.percent('The same of the floor').nullable(),
    suggested: suggestedFees,
    transferCostUsdc: field.object(
      'What a transfer costs at that base fee, in USDC, rounded up to six decimals: without a priority fee, and ' +
        'with the normal one of `suggested` (null without one)',
      {
        native: field.usdc('A native transfer, without a tip'),
        erc20: field.usdc('A token transfer, without a tip'),
        nativeWithTip: field.usdc('A native transfer with the tip').nullable(),
        erc20WithTip: field.usdc('A token transfer with the tip').nullable(),
      },
    ),
    transferGas: field.object('The gas behind those costs', {
      native: z.int().positive().meta({ description: 'Gas of a native transfer' }),
      erc20: z.int().positive().meta({ description: 'Gas of a token transfer' }),
      erc20Measured: field.boolean(
        'true: the median of the last 24 hours; false: what a USDC transfer usually takes, as none was measured',
      ),
    }),
    hours: field.list(
      'The last 24 hours of the clock, oldest first, the current one included; hours without data are left out',
      {
        at: field.at('Beginning of the hour'),
        minGwei: field.decimal('Lowest base fee in gwei'),
        avgGwei: field.decimal('Mean over the blocks in gwei'),
        maxGwei: field.decimal('Highest base fee in gwei'),
        ...utilisation('Mean share of the gas limit that blocks used'),
      },
    ),
    detail: detailField,
    ...provenanceFields,
  }),
  ...keptUntilWritten,
  example: {
    params: {},
    result: {
      baseFee: { wei: '20130000000', gwei: '20.13', block: 32250000 },
      nextBaseFee: { wei: '20080000000', gwei: '20.08', exact: true },
      floorGwei: '20',
      aboveFloorGwei: '0.13',
      aboveFloorPercent: '0.65',
      suggested: EXAMPLE_SUGGESTED,
      transferCostUsdc: { native: '0.000423', erc20: '0.001027', nativeWithTip: '0.000423', erc20WithTip: '0.001028' },
      transferGas: { native: 21_000, erc20: 51_000, erc20Measured: true },
      hours: [
        {
          at: 1795197600,
          minGwei: '20',
          avgGwei: '20.013',
          maxGwei: '21.4',
          utilisationShare: 0.067,
          utilisation: 0.067,
        },
      ],
      detail: DETAIL,
      ...EXAMPLE_PROVENANCE,
    },
  },
  async run(_params, sources: Collected) {
    const { reads } = sources;
    const until = collectedUntil(sources);
    const latest = reads.latestFee();
    if (latest === null) throw nothingYet();
    const [median] = percentilesIn(reads.costs('tokenTransfer', 'gas', until - DAY_SECONDS), [50]) ?? [];
    const erc20 = Number(median ?? ERC20_GAS);
    const floor = floorOf(sources, until);
    const tips = tipsOf(reads, until);
    return {
      baseFee: showBaseFee(latest),
      nextBaseFee: showNextBaseFee(latest, floor),
      floorGwei: floor === null ? null : formatGwei(floor),
      ...aboveFloor(latest, floor),
      suggested: suggestFees(tips, nextFeeOf(latest, floor)),
      transferCostUsdc: {
        native: costOfGas(NATIVE_GAS, latest.baseFee),
        erc20: costOfGas(erc20, latest.baseFee),
        nativeWithTip: tips && costOfGas(NATIVE_GAS, latest.baseFee + tips.normal),
        erc20WithTip: tips && costOfGas(erc20, latest.baseFee + tips.normal),
      },
      transferGas: { native: NATIVE_GAS, erc20, erc20Measured: median !== undefined },
      hours: lastHours(sources, until).map((hour) => ({
        at: hour.at,
        minGwei: formatGwei(hour.minBaseFee),
        avgGwei: formatGwei(hour.avgBaseFee),
        maxGwei: formatGwei(hour.maxBaseFee),
        ...showUtilisation(hour.utilisation),
      })),
      detail: DETAIL,
      ...provenance(sources),
    };
  },
});

/** The base fee never lies below the floor. */
function aboveFloor(latest: LatestFee, floor: bigint | null) {
  if (floor === null) return { aboveFloorGwei: null, aboveFloorPercent: null };
  const above = latest.baseFee - floor;
  return { aboveFloorGwei: formatGwei(above), aboveFloorPercent: floor === 0n ? null : percentOf(above, floor) };
}
