import { AppError, NotFound } from '../errors.ts';
import { ExchangeFailed } from '../upstream/client/failure.ts';
import {
  askThirdParty,
  MAX_REDIRECTS,
  type ThirdPartyAnswer,
  type ThirdPartyOptions,
} from '../upstream/guard/follow.ts';
import { hostOf } from '../upstream/guard/guard.ts';
import { type Payable, readChallenge, readOffer, refusal, type Terms } from './challenge.ts';
import { type Description, describeChallenge } from './description.ts';
import type { Entry } from './entry.ts';

// An unpaid call to a seller, as a buyer's first request is, and the documents of its origin.

export interface Seen {
  /** The URL that answered, after redirects. */
  readonly url: URL;
  readonly method: Entry['method'];
  readonly offer: Terms;
  readonly description: Description;
  readonly latencyMs: number;
}

interface CallOptions {
  readonly limitHost?: (host: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Failures are named errors: BadParameter `https_only`, `own_origin`, `url_not_public`, `no_402`,
 * `unreadable_challenge` or `not_payable_here`; NotFound `host_not_found`; 502 `timeout`, `too_large`, `unreachable`.
 */
export interface Caller {
  /** Follows redirects, and tries a POST when a GET is answered 404 or 405. */
  find(url: URL, options: CallOptions): Promise<Seen>;
  /** A redirect is a failure, because a listed route answers at its own URL. */
  call(url: URL, method: Entry['method'], options: CallOptions): Promise<Seen>;
  /** Null when there is none, for any reason. */
  readJson(url: URL, maxBytes: number, options: CallOptions): Promise<unknown>;
}

interface CallerOptions extends ThirdPartyOptions {
  readonly payable: Payable;
  readonly publicOrigin: string;
}

/** For JSON, because a seller may also serve pages for people. */
const ACCEPT = 'application/json, */*;q=0.1';
/** A seller demands payment before it checks the body; a route that does not is not listed. */
const EMPTY_BODY = '{}';

export function createCaller({ payable, publicOrigin, ...fetchOptions }: CallerOptions): Caller {
  const ownHost = new URL(publicOrigin).host;
  const isTestHost = (url: URL) => fetchOptions.dial.testHosts?.has(hostOf(url)) ?? false;

  /** Runs on every redirect too. Only a test host may use plain http. */
  function checkUrl(url: URL, limitHost: CallOptions['limitHost']): void {
    if (url.host === ownHost) throw refusal('own_origin', 'our own routes are listed already');
    if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isTestHost(url))) {
      throw refusal('https_only', 'only https URLs are listed');
    }
    limitHost?.(hostOf(url));
  }

  async function ask(url: URL, method: Entry['method'], redirects: number, options: CallOptions) {
    const body = method === 'POST' ? EMPTY_BODY : undefined;
    const checkHop = (hop: URL) => checkUrl(hop, options.limitHost);
    const request = { url, method, accept: ACCEPT, body, redirects, checkUrl: checkHop };
    const read = (answer: ThirdPartyAnswer) => readSeen(answer, method, payable);
    return askThirdParty(request, fetchOptions, options.signal, read).catch((error) => {
      throw namedFailure(error, hostOf(url));
    });
  }

  return {
    async find(url, options) {
      const first = await ask(url, 'GET', MAX_REDIRECTS, options);
      const seen = first === 404 || first === 405 ? await ask(url, 'POST', 0, options) : first;
      return requirePriced(typeof seen === 'number' ? first : seen);
    },
    call: async (url, method, options) => requirePriced(await ask(url, method, 0, options)),
    async readJson(url, maxBytes, { limitHost, signal }) {
      const sameOrigin = (hop: URL) => {
        if (hop.origin !== url.origin) throw new NotFound('the document is not at its origin');
        checkUrl(hop, limitHost);
      };
      const request = { url, method: 'GET' as const, accept: 'application/json', redirects: 1, checkUrl: sameOrigin };
      return askThirdParty(request, fetchOptions, signal, async (answer) =>
        answer.status === 200 ? (JSON.parse((await answer.read(maxBytes)).toString('utf8')) as unknown) : null,
      ).catch(() => null);
    },
  };
}

async function readSeen(answer: ThirdPartyAnswer, method: Entry['method'], payable: Payable): Promise<Seen | number> {
  const { status, url, latencyMs } = answer;
  if (status !== 402) return status;
  const challenge = await readChallenge(answer);
  const offer = readOffer(challenge, payable);
  return { url, method, offer, description: describeChallenge(challenge, url, method), latencyMs };
}

function requirePriced(seen: Seen | number): Seen {
  if (typeof seen !== 'number') return seen;
  throw refusal('no_402', `an unpaid call must be answered 402; it answers ${seen}`);
}

/** A failed call as 502: a fault of the seller's server or the network. Other errors stay. */
function namedFailure(error: unknown, host: string): unknown {
  if (!(error instanceof ExchangeFailed)) return error;
  return new AppError(502, codeOf(error), `${host}: ${error.message}`, { cause: error });
}

function codeOf({ message }: ExchangeFailed): string {
  if (/timed out/.test(message)) return 'timeout';
  return /too large|larger than/.test(message) ? 'too_large' : 'unreachable';
}
