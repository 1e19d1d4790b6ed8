import { z } from 'zod';

/** A use of gas as a share, under its name and under the one that it was released with. */
export function utilisation(description: string) {
  return {
    utilisationShare: z.number().meta({ description: `${description}, 0 to 1` }),
    utilisation: z.number().meta({ description: 'The same, under its old name' }),
  };
}

/** Six decimals: a millionth of a block's gas limit is less gas than any transaction uses. */
export function showUtilisation(value: number) {
  const share = roundedShare(value);
  return { utilisationShare: share, utilisation: share };
}

export function roundedShare(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}
