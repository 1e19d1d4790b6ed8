import { createHash } from 'node:crypto';
import { PUBLIC_ORIGIN } from '../service/environment.ts';
import type { ClientRequest } from '../service/instance.ts';

const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');

/** The hash that an invoice for an HTTP request signs: of the canonical JSON of the scheme's binding, whose body is empty. */
export function boundHash(url: string): string {
  const domain = 'x402:exact:lnbtc:bolt11:http:1';
  return sha256(
    `{"bodyHash":"${sha256('')}","domain":"${domain}","headers":[],"method":"GET","url":${JSON.stringify(url)}}`,
  );
}

/** The same for a call of a tool: its arguments are flat, with text alone. */
function boundToolHash(name: string, given: Readonly<Record<string, string>>): string {
  const sorted = Object.entries(given).sort(([a], [b]) => (a < b ? -1 : 1));
  const domain = 'x402:exact:lnbtc:bolt11:mcp:1';
  const call = `"metadata":[],"method":"tools/call","name":${JSON.stringify(name)},"server":"${PUBLIC_ORIGIN}/mcp"`;
  return sha256(`{"arguments":${JSON.stringify(Object.fromEntries(sorted))},"domain":"${domain}",${call}}`);
}

/** The hash that an invoice for this request signs, whatever way it comes. */
export function boundHashOf({ method, url, body }: ClientRequest): string {
  if (method === 'GET') return boundHash(`${PUBLIC_ORIGIN}${url}`);
  const { params } = JSON.parse(body ?? '') as { params: { name: string; arguments: Record<string, string> } };
  return boundToolHash(params.name, params.arguments);
}
