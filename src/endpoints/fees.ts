import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { percentilesIn } from '../lib/percentile.ts';
import { sourceSchema } from '../lib/source.ts';
import { formatGwei, formatNative } from '../lib/units.ts';
import { atField, decimal } from './chain-fields.ts';
import { baseFee, DAY_SECONDS, floorOf, nextBaseFee, showBaseFee, showNextBaseFee } from './fee-fields.ts';
import {
  type Collected,
  collectedUntil,
  EXAMPLE_PROVENANCE,
  freshness,
  KEEP_MS,
  provenance,
  untilWritten,
} from './freshness.ts';

/** Gas of a plain value transfer by the EVM's rule (Ethereum yellow paper, appendix G: Gtransaction). */
const NATIVE_GAS = 21_000;
/** Gas of a USDC transfer on Arc, used until one was measured (`arc.md` of the project's facts, 1.9). */
const ERC20_GAS = 51_000;

const result = z.strictObject({
  baseFee,
  nextBaseFee,
  floorGwei: decimal('In gwei').nullable().meta({
    description: "The chain's lowest base fee in gwei: the lowest of the last 24 hours, unless the operator states it",
  }),
  transferCostUsdc: z
    .strictObject({ native: decimal('In USDC'), erc20: decimal('In USDC') })
    .nullable()
    .meta({ description: 'A native and a token transfer at that base fee, in USDC; a priority fee comes on top' }),
  transferGas: z
    .strictObject({
      native: z.int().positive().meta({ description: 'Gas of a native transfer' }),
      erc20: z.int().positive().meta({ description: 'Gas of a token transfer' }),
      erc20Measured: z.boolean().meta({
        description:
          'true: the median of the last 24 hours; false: what a USDC transfer usually takes, as none was measured',
      }),
    })
    .meta({ description: 'The gas behind those costs' }),
  hours: z
    .array(
      z.strictObject({
        at: atField('Beginning of the hour'),
        minGwei: decimal('Lowest base fee in gwei'),
        avgGwei: decimal('Mean over the blocks in gwei'),
        maxGwei: decimal('Highest base fee in gwei'),
        utilisation: z.number().meta({ description: 'Mean share of the gas limit that blocks used, 0 to 1' }),
      }),
    )
    .meta({
      description:
        'The last 24 hours of the clock, oldest first, the current one included; hours without data are left out',
    }),
  freshness,
  source: sourceSchema,
});

/** Base fees now and over the last day. */
export const fees = defineEndpoint({
  path: '/fees',
  access: 'free',
  label: 'Fees',
  summary: 'Base fee now, in the next block and over the last hours, the floor, and what a transfer costs.',
  params: z.object({}),
  result,
  cacheMs: KEEP_MS,
  version: untilWritten,
  example: {
    params: {},
    result: {
      baseFee: { wei: '20130000000', gwei: '20.13', block: 32250000 },
      nextBaseFee: { wei: '20080000000', gwei: '20.08', exact: true },
      floorGwei: '20',
      transferCostUsdc: { native: '0.00042273', erc20: '0.00102663' },
      transferGas: { native: 21_000, erc20: 51_000, erc20Measured: true },
      hours: [{ at: 1795197600, minGwei: '20', avgGwei: '20.013', maxGwei: '21.4', utilisation: 0.067 }],
      ...EXAMPLE_PROVENANCE,
    },
  },
  async run(_params, sources: Collected) {
    const { reads } = sources;
    const until = collectedUntil(sources);
    const latest = reads.latestFee();
    const [median] = percentilesIn(reads.costs('tokenTransfer', 'gas', until - DAY_SECONDS), [50]) ?? [];
    const erc20 = Number(median ?? ERC20_GAS);
    const floor = floorOf(sources, until);
    return {
      baseFee: showBaseFee(latest),
      nextBaseFee: showNextBaseFee(latest, floor),
      floorGwei: floor === null ? null : formatGwei(floor),
      transferCostUsdc: latest && {
        native: formatNative(BigInt(NATIVE_GAS) * latest.baseFee),
        erc20: formatNative(BigInt(erc20) * latest.baseFee),
      },
      transferGas: { native: NATIVE_GAS, erc20, erc20Measured: median !== undefined },
      hours: reads.hours(until - DAY_SECONDS + 3600, until + 1).map((hour) => ({
        at: hour.at,
        minGwei: formatGwei(hour.minBaseFee),
        avgGwei: formatGwei(hour.avgBaseFee),
        maxGwei: formatGwei(hour.maxBaseFee),
        utilisation: Math.round(hour.utilisation * 1e6) / 1e6,
      })),
      ...provenance(sources),
    };
  },
});
