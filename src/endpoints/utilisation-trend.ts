import { z } from 'zod';
import type { FeeReads } from '../collector/store/fees.ts';
import { atField } from './chain-fields.ts';
import { roundedShare, showUtilisation, utilisation } from './utilisation-fields.ts';

/** Two hours: long enough to show a trend, short enough to show the present one. */
const TREND_SECONDS = 2 * 3600;
const POINT_SECONDS = 300;
const HOUR = 3600;

/** The change of block utilisation. */
export const trend = z
  .strictObject({
    points: z.array(
      z.strictObject({
        at: atField('Beginning of five minutes'),
        ...utilisation('Mean share of the gas limit that their blocks used'),
      }),
    ),
    slopeSharePerHour: z.number().nullable().meta({
      description: 'Change of the share an hour, by least squares over the points; null with fewer than two',
    }),
    slopePerHour: z.number().nullable().meta({ description: 'The same, under its old name' }),
  })
  .meta({ description: 'The last two hours in steps of five minutes, oldest first, the current step included' });

export const EXAMPLE_TREND = {
  points: [
    { at: 1795198800, utilisationShare: 0.064, utilisation: 0.064 },
    { at: 1795199100, utilisationShare: 0.068, utilisation: 0.068 },
  ],
  slopeSharePerHour: 0.048,
  slopePerHour: 0.048,
};

export function trendOf(reads: Pick<FeeReads, 'minutes'>, until: number): z.output<typeof trend> {
  const begin = Math.floor((until - TREND_SECONDS) / POINT_SECONDS) * POINT_SECONDS + POINT_SECONDS;
  const steps = Map.groupBy(
    reads.minutes(begin, until + 1),
    ({ at }) => Math.floor(at / POINT_SECONDS) * POINT_SECONDS,
  );
  const points = [...steps].map(([at, minutes]) => {
    const blocks = minutes.reduce((sum, minute) => sum + minute.blocks, 0);
    return {
      at,
      ...showUtilisation(minutes.reduce((sum, minute) => sum + minute.utilisation * minute.blocks, 0) / blocks),
    };
  });
  const slope = slopeOf(points.map(({ at, utilisationShare }) => [(at - begin) / HOUR, utilisationShare]));
  const perHour = slope === null ? null : roundedShare(slope);
  return { points, slopeSharePerHour: perHour, slopePerHour: perHour };
}

/** The slope of the least-squares line through the points; null when the points determine none. */
export function slopeOf(points: readonly (readonly [number, number])[]): number | null {
  const mean = (of: 0 | 1) => points.reduce((sum, point) => sum + point[of], 0) / points.length;
  const [meanX, meanY] = [mean(0), mean(1)];
  const spread = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  if (points.length < 2 || spread === 0) return null;
  return points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0) / spread;
}
