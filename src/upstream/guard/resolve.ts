import { Resolver } from 'node:dns/promises';
import { NotFound } from '../../errors.ts';
import { orAborted } from '../../lib/tasks.ts';
import { ExchangeFailed } from '../client/failure.ts';

/** Time-out of each of the two tries, 1.5 s. Both fit into the time-out for connecting. */
const QUERY_MS = 1500;
const TRIES = 2;
/** Time-out of the one question for the root, which is asked after the name was answered. */
const ROOT_MS = 1000;

/** Resolves a host name to all its addresses, IPv4 first, because not every machine can reach IPv6. */
export type Resolve = (host: string, signal: AbortSignal) => Promise<string[]>;

/**
 * Asks the machine's name servers directly. The system's `getaddrinfo` runs in the four threads that Node also uses for files and compression,
 * so a third party's silent name server could stall the whole service.
 */
export function createResolve(servers?: readonly string[]): Resolve {
  const resolver = new Resolver({ timeout: QUERY_MS, tries: TRIES });
  const ofRoot = new Resolver({ timeout: ROOT_MS, tries: 1 });
  if (servers) for (const one of [resolver, ofRoot]) one.setServers(servers);
  return async (host, signal) => {
    const both = Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    const [v4, v6] = await orAborted(both, signal);
    const found = [v4, v6].flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
    if (found.length > 0) return found;
    const isGone = [v4, v6].every((result) => result.status === 'rejected' && isAbsent(result.reason));
    if (isGone && !(await orAborted(lacksTheRoot(ofRoot), signal))) {
      throw new NotFound(`the host ${host} does not exist`, 'host_not_found');
    }
    // The machine's resolver gives the same error whether it is at fault itself or the name's own servers are.
    throw new ExchangeFailed('connecting', 'its name cannot be resolved now', undefined, { mayBeOurs: true });
  };
}

/**
 * Whether the name servers know no name at all. The root has name servers wherever the domain name system is reached, but a name server without a
 * network may answer for every name that it does not exist. One that refuses, fails or drops this question says nothing of other names.
 */
async function lacksTheRoot(resolver: Resolver): Promise<boolean> {
  return resolver.resolveNs('.').then(() => false, isAbsent);
}

/** Whether the name does not exist or has no address of that kind. Both are answers and no failures. */
function isAbsent(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  return code === 'ENOTFOUND' || code === 'ENODATA';
}
