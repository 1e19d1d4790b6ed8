import { AppError, BadParameter, Unavailable } from '../../errors.ts';
import { ExchangeFailed } from '../../upstream/client/failure.ts';

/** Why an address is not listed, or why a listed one failed its hourly call: stable words for programs. */
export type RefusalCode = 'https_only' | 'own_origin' | 'no_402' | 'unreadable_challenge' | 'not_payable_here';

/** 400 for an address that is no listing: `detail` tells its seller what to change. */
export function refusal(code: RefusalCode, detail: string): BadParameter {
  return new BadParameter([{ path: 'url', message: detail }], code);
}

/** Too many of one host, or in all; somebody must leave first. */
export const HOST_FULL = new AppError(
  409,
  'host_full',
  'The registered domain of this host has as many listings as one may have; all names below it count, also where several owners share it.',
);
export const MARKET_FULL = new Unavailable('market_full', 'The market has as many listings as it takes.', 3600);

/** What came of a call to a seller, under our names: 502 for what its server or the network did; anything that is named already stays. */
export function namedFailure(error: unknown, host: string): unknown {
  if (!(error instanceof ExchangeFailed)) return error;
  return new AppError(502, codeOf(error), `${host}: ${error.message}`, { cause: error });
}

function codeOf({ message }: ExchangeFailed): string {
  if (/timed out/.test(message)) return 'timeout';
  return /too large|larger than/.test(message) ? 'too_large' : 'unreachable';
}
