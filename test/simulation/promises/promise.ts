/** What the service promises, by the names under which breaches are reported. */
export const PROMISES = [
  'no payment is sold twice',
  'no answer without its full price',
  'who paid is served',
  'what failed cost nothing',
  'charged said the truth',
  'the ledger equals the chain',
  'the relayer keeps its bounds',
  'nothing is done for who cannot pay',
  'honest buyers are served',
  'no secret leaves',
  'every call is answered',
  'every payment ends',
  'the process lives on',
  'no charge above its ceiling',
  'a charge is never lost',
  'a channel adds up',
  'no deposit is made twice',
  'the escrow covers what is charged',
] as const;

export type PromiseName = (typeof PROMISES)[number];

/** One broken promise. */
export interface Breach {
  readonly promise: PromiseName;
  readonly detail: string;
  readonly atMs: number;
}

/** Tells of a breach; the first one ends the seed. */
export type Tell = (promise: PromiseName, detail: string) => void;
