import type { Entry } from '../discovery/entry.ts';
import { askAtWithCurl, buyInTypeScript, type ExampleTerms, quoteScript, quoteShell } from './examples.ts';
import type { CallExample } from './reference/call-examples.ts';

/** How another seller's route is asked for its price and bought. Every text of the seller stays text: no quote ends, nothing is evaluated. */
export function callOf(entry: Entry, { network, asset }: ExampleTerms): CallExample[] {
  const url = exampleUrl(entry);
  const body = entry.method === 'POST' ? JSON.stringify(exampleBody(entry)) : null;
  const posted = body === null ? '' : ` -H 'content-type: application/json' -d ${quoteShell(body)}`;
  const init =
    body === null
      ? ''
      : `, { method: 'POST', headers: { 'content-type': 'application/json' }, body: ${quoteScript(body)} }`;
  const asked: CallExample = { language: 'curl', note: 'what it asks for now', code: askAtWithCurl(url, posted) };
  if (entry.rail !== 'direct' && entry.direct === null) return [asked];
  const target = quoteScript(entry.direct?.url ?? url);
  const maxAmount = String(Math.ceil(Number(entry.direct?.priceUsd ?? entry.priceUsd) * 1e6));
  const code = buyInTypeScript({ network, asset, target, maxAmount, init });
  return [asked, { language: 'TypeScript', note: 'pays at most the listed price, with the stock client', code }];
}

/** The address with the seller's examples of its query. A `{placeholder}` stays for the reader to replace. */
function exampleUrl({ url, params }: Entry): string {
  const query = new URLSearchParams();
  for (const { name, in: place, required, example } of params) {
    if (place === 'query' && (example !== null || required)) query.append(name, textOf(example));
  }
  if (query.size === 0) return url;
  return `${url}${url.includes('?') ? '&' : '?'}${query}`;
}

function exampleBody({ body, params }: Entry): unknown {
  if (body !== null) return body;
  const fields = params.filter(({ in: place, required }) => place === 'body' && required);
  return Object.fromEntries(fields.map(({ name, example }) => [name, example ?? '…']));
}

function textOf(example: Entry['params'][number]['example']): string {
  if (example === null) return '';
  return typeof example === 'string' ? example : JSON.stringify(example);
}
