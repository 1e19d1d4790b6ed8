import { AppError, BadParameter, Unavailable } from '../../errors.ts';
import { ExchangeFailed } from '../../upstream/client/failure.ts';

/** Why a URL is not listed, or why a listed route failed its hourly call. The codes are stable. */
export type RefusalCode = 'https_only' | 'own_origin' | 'no_402' | 'unreadable_challenge' | 'not_payable_here';

/** 400 for a URL that cannot be listed. `detail` tells its seller what to change. */
export function refusal(code: RefusalCode, detail: string): BadParameter {
  return new BadParameter([{ path: 'url', message: detail }], code);
}

/** The domain, or the whole market, has as many listings as allowed. A listing must be dropped first. */
export const HOST_FULL = new AppError(
  409,
  'host_full',
  'The registered domain of this host has as many listings as one may have; all names below it count, also where several owners share it.',
);
export const MARKET_FULL = new Unavailable('market_full', 'The market has as many listings as it accepts.', 3600);

/**
 * Converts a failed call to a named error: 502 for a fault of the seller's server or the network. An error that is named already is returned as it
 * is.
 */
export function namedFailure(error: unknown, host: string): unknown {
  if (!(error instanceof ExchangeFailed)) return error;
  return new AppError(502, codeOf(error), `${host}: ${error.message}`, { cause: error });
}

function codeOf({ message }: ExchangeFailed): string {
  if (/timed out/.test(message)) return 'timeout';
  return /too large|larger than/.test(message) ? 'too_large' : 'unreachable';
}
