import { NotFound } from '../../errors.ts';
import { askThirdParty, type ThirdPartyAnswer, type ThirdPartyOptions } from '../../upstream/guard/ask-third-party.ts';
import { MAX_REDIRECTS } from '../../upstream/guard/follow.ts';
import { hostOf } from '../../upstream/guard/guard.ts';
import type { Payable, Terms } from '../accepts.ts';
import { describeChallenge } from '../describe-challenge.ts';
import type { Entry } from '../entry.ts';
import type { Description } from '../read-description.ts';
import { readChallenge, readOffer } from '../read-offer.ts';
import { namedFailure, refusal } from './market-refusals.ts';

/** What a seller answered to an unpaid call. */
export interface Seen {
  /** Where it answered, after redirects. */
  readonly url: URL;
  readonly method: Entry['method'];
  readonly offer: Terms;
  readonly description: Description;
  readonly latencyMs: number;
}

interface CallOptions {
  /** Throws when the host has had enough requests. */
  readonly limitHost?: (host: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Calls sellers as an unpaid buyer would. What fails is a named error: BadParameter with `https_only`, `own_origin`, `url_not_public`,
 * `no_402`, `unreadable_challenge` or `not_payable_here`; NotFound `host_not_found`; 502 with `timeout`, `too_large` or `unreachable`.
 */
export interface Caller {
  /** Finds the route behind an address: redirects are followed, and where no GET is answered a POST is tried. */
  find(url: URL, options: CallOptions): Promise<Seen>;
  /** Exactly one request to a route that is known: one that redirects does not answer at its own address. */
  call(url: URL, method: Entry['method'], options: CallOptions): Promise<Seen>;
  /** Reads a JSON document of an origin; null when there is none, whatever the reason. */
  readJson(url: URL, maxBytes: number, options: CallOptions): Promise<unknown>;
}

interface CallerOptions extends ThirdPartyOptions {
  readonly payable: Payable;
  readonly publicOrigin: string;
}

/** A seller who prefers pages for people is told that we are none. */
const ACCEPT = 'application/json, */*;q=0.1';
/** A POST without content: a seller asks for money before it looks at what it was given, or is no seller of ours. */
const EMPTY_BODY = '{}';

/** Makes the caller of strangers' routes; it holds nothing between calls. */
export function createCaller({ payable, publicOrigin, ...stranger }: CallerOptions): Caller {
  const ownHost = new URL(publicOrigin).host;
  const isTestHost = (url: URL) => stranger.dial.testHosts?.has(hostOf(url)) ?? false;

  /** 1. not ourselves; 2. encrypted (what stands in for a host in tests may be plain); 3. the host's share. The guard comes after, at every hop. */
  function judge(url: URL, limitHost: CallOptions['limitHost']): void {
    if (url.host === ownHost) throw refusal('own_origin', 'our own routes are listed already');
    if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isTestHost(url))) {
      throw refusal('https_only', 'only https URLs are listed');
    }
    limitHost?.(hostOf(url));
  }

  /** What is asked there, or the status of an answer that asks nothing. */
  async function ask(
    url: URL,
    method: Entry['method'],
    redirects: number,
    options: CallOptions,
  ): Promise<Seen | number> {
    const body = method === 'POST' ? { body: EMPTY_BODY } : {};
    const request = {
      url,
      method,
      accept: ACCEPT,
      ...body,
      redirects,
      checkUrl: (hop: URL) => judge(hop, options.limitHost),
    };
    const read = (answer: ThirdPartyAnswer) => readSeen(answer, method, payable);
    return askThirdParty(request, stranger, options.signal, read).catch((error) => {
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
        judge(hop, limitHost);
      };
      const request = { url, method: 'GET' as const, accept: 'application/json', redirects: 1, checkUrl: sameOrigin };
      return askThirdParty(request, stranger, signal, async (answer) =>
        answer.status === 200 ? (JSON.parse((await answer.read(maxBytes)).toString('utf8')) as unknown) : null,
      ).catch(() => null);
    },
  };
}

/** What an answer asks for, or its status where it asks nothing. */
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
