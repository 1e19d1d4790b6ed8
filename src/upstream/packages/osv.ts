import { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';
import type { Upstream } from '../client/http.ts';
import { ECOSYSTEMS } from './ecosystems.ts';
import { type Advisory, readAdvisories } from './osv-advisories.ts';
import type { OsvQuestion } from './osv-question.ts';
import { type OsvRecord, recordSchema } from './osv-record.ts';

export interface Osv {
  /** Every advisory that is not withdrawn, each vulnerability once, newest first. Empty also when OSV does not know the package. */
  advisories(question: OsvQuestion, signal?: AbortSignal): Promise<OsvAnswer>;
}

/** OSV's answer to one question. */
export interface OsvAnswer {
  readonly advisories: Advisory[];
  /** An advisory proves that the package, and the version where one was asked, exists or once did: it names the package, and lists the version. */
  readonly isNamed: boolean;
  readonly url: string;
  readonly retrievedAtMs: number;
}

/** OSV ends a page after 1000 records or 20 seconds (https://google.github.io/osv.dev/post-v1-query/); no package has a tenth of ten thousand. */
const MAX_PAGES = 10;

const pageSchema = z
  .looseObject({ vulns: z.array(recordSchema).default([]), next_page_token: z.string().optional() })
  // An empty object means that nothing is known. Any other answer without the expected fields must not count as that.
  .refine(
    (page) => page.vulns.length > 0 || page.next_page_token !== undefined || isEmpty(page),
    'neither a page nor empty',
  );

function isEmpty(page: Record<string, unknown>): boolean {
  return Object.keys(page).every((key) => key === 'vulns');
}

/** OSV.dev's query API. */
export function createOsv(upstream: Upstream, baseUrl: string): Osv {
  /** Reads all pages or fails, because a part of the advisories would look complete. */
  async function readPages(query: Record<string, unknown>, signal?: AbortSignal) {
    const records: OsvRecord[] = [];
    let token: string | undefined;
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const body = JSON.stringify({ ...query, ...(token && { page_token: token }) });
      const headers = { 'content-type': 'application/json' };
      const request = { url: `${baseUrl}/v1/query`, method: 'POST' as const, headers, body, ...(signal && { signal }) };
      const page = await upstream.jsonDated(request, pageSchema);
      // OSV uses 404 for single records only. A query without a result gives an empty object.
      if (!page) throw new UpstreamFailed(upstream.name, 'answered HTTP 404');
      records.push(...page.data.vulns);
      token = page.data.next_page_token || undefined;
      if (token === undefined) return { records, url: page.url, retrievedAtMs: page.retrievedAtMs };
    }
    throw new UpstreamFailed(upstream.name, `answered more than ${MAX_PAGES} pages`);
  }

  return {
    async advisories(question, signal) {
      const { ecosystem, name, version } = question;
      const asked = { name, ecosystem: ECOSYSTEMS[ecosystem].osv };
      const { records, ...read } = await readPages({ package: asked, ...(version !== null && { version }) }, signal);
      const advisories = readAdvisories(records, question);
      const isNamed = advisories.some((one) => version === null || one.affectedVersions.length > 0);
      return { advisories, isNamed, ...read };
    },
  };
}
