import { UpstreamFailed } from '../../errors.ts';
import type { Upstream } from '../client/http.ts';
import { parseJson } from '../client/json.ts';
import type { RdapBootstrap } from './rdap-bootstrap.ts';
import { isRecordOf, type Registration, rdapDomainSchema, registrationOf } from './rdap-record.ts';

/** The answer of the registry that is responsible for a domain. */
export interface RdapAnswer {
  /** Host of the server that was asked. */
  readonly registry: string;
  readonly url: string;
  /** Null when the registry has no record of the name. The name may still not be free: reserved names have no record either. */
  readonly registration: Registration | null;
  /** Whether IANA's list names that server as the one responsible. */
  readonly vouched: boolean;
  /** Unix milliseconds; for a missing record the time of the request. */
  readonly retrievedAtMs: number;
}

/** Registration data of domain names. */
export interface Rdap {
  /** The registry's answer for a registrable domain in ASCII; null when its registry publishes no RDAP. */
  domain(domain: string, signal?: AbortSignal): Promise<RdapAnswer | null>;
}

/** RDAP through the server that the bootstrap names. Only the registry is asked. The registrar's record would add only latency and personal data. */
export function createRdap(upstream: Upstream, bootstrap: RdapBootstrap): Rdap {
  return {
    async domain(domain, signal) {
      const server = await bootstrap.serverFor(domain, signal);
      if (server === null) return null;
      const url = `${server.url}domain/${domain}`;
      const { host } = new URL(url);
      const at = { registry: host, url, vouched: server.vouched };
      const request = { url, accept: 'application/rdap+json, application/json;q=0.9', ...(signal && { signal }) };
      const { status, headers, body, retrievedAtMs } = await upstream.fetch(request);
      if (status === 404) return { ...at, registration: null, retrievedAtMs };
      if (status !== 200) throw new UpstreamFailed(upstream.name, `${host} answered HTTP ${status}`);
      const record = parseJson(upstream.name, headers['content-type'], body, rdapDomainSchema);
      if (!isRecordOf(domain, record))
        throw new UpstreamFailed(upstream.name, `${host} answered with the record of another name`);
      return { ...at, registration: registrationOf(record), retrievedAtMs };
    },
  };
}
