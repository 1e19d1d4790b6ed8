import { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Upstream } from '../client/http.ts';
import { type ServersByTld, SHIPPED_SERVERS, UNLISTED_SERVERS } from './rdap-servers.ts';

/** RFC 9224: each service is the list of its top-level domains and the list of its base URLs. */
const bootstrapSchema = z.object({
  publication: z.string(),
  services: z.array(z.tuple([z.array(z.string()), z.array(z.string())])).min(1),
});

/** IANA sends `max-age=86400`; entries change a few times a month. */
const FRESH_MS = 24 * 3_600_000;
/** After a failed read the current copy is used for this time, so that not every call waits for a dead host. */
const RETRY_MS = 10 * 60_000;

/** A registry's server; `vouched` is true when IANA's list names it. */
export interface RdapServer {
  readonly url: string;
  readonly vouched: boolean;
}

/** Finds the server that answers for a domain name. */
export interface RdapBootstrap {
  /** Null when the registry publishes no RDAP. Rejects with UpstreamFailed when this is unknown, because only the shipped copy is available. */
  serverFor(domain: string, signal?: AbortSignal): Promise<RdapServer | null>;
}

/**
 * IANA's list of RDAP servers, read once a day. After a failure the last good copy is used, and before the first read a shipped copy.
 * `url` is the file's URL.
 */
export function createRdapBootstrap(upstream: Upstream, url: string, clock: Clock): RdapBootstrap {
  let servers: ServersByTld | null = null;
  // Invariant: the file is not asked for before this time, whether the last read failed or not.
  let dueMs = 0;

  async function refresh(signal?: AbortSignal): Promise<void> {
    if (clock.nowMs() < dueMs) return;
    try {
      const answer = await upstream.json({ url, ...(signal && { signal }) }, bootstrapSchema);
      if (answer !== null) servers = serversOf(answer.services);
      dueMs = clock.nowMs() + (answer === null ? RETRY_MS : FRESH_MS);
    } catch (error) {
      if (signal?.aborted) throw error;
      dueMs = clock.nowMs() + RETRY_MS;
    }
  }

  return {
    async serverFor(domain, signal) {
      await refresh(signal);
      const listed = longestMatch(servers ?? SHIPPED_SERVERS, domain);
      if (listed !== null) return { url: listed, vouched: true };
      const unlisted = longestMatch(UNLISTED_SERVERS, domain);
      if (unlisted !== null) return { url: unlisted, vouched: false };
      if (servers === null) throw new UpstreamFailed(upstream.name, 'the list of RDAP servers cannot be read now');
      return null;
    },
  };
}

function serversOf(services: z.output<typeof bootstrapSchema>['services']): ServersByTld {
  return new Map(
    services.flatMap(([tlds, urls]) => {
      const url = bestOf(urls);
      return url === null ? [] : tlds.map((tld) => [tld.toLowerCase(), url] as const);
    }),
  );
}

/** Prefers https. Two country codes offer only http, which is acceptable for a public record. */
function bestOf(urls: readonly string[]): string | null {
  const usable = urls.filter((url) => /^https?:/.test(url) && URL.canParse(url) && !url.includes('%'));
  const url = usable.find((candidate) => candidate.startsWith('https:')) ?? usable[0];
  return url === undefined ? null : url.replace(/\/*$/, '/');
}

/** RFC 9224, 4: the entry that shares the most labels, from the right. */
function longestMatch(servers: ServersByTld, domain: string): string | null {
  const labels = domain.split('.');
  for (let from = 0; from < labels.length; from++) {
    const url = servers.get(labels.slice(from).join('.'));
    if (url !== undefined) return url;
  }
  return null;
}
