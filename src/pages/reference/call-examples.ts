import { askAtWithCurl, buyInTypeScript, type ExampleTerms, quoteScript, quoteShell } from '../examples.ts';
import type { Operation } from './read-document.ts';

/** Code that calls an operation, in one language. */
export interface CallExample {
  readonly language: 'curl' | 'TypeScript' | 'Python';
  /** What the code does. */
  readonly note: string;
  readonly code: string;
}

/** The path and query of a call with the operation's examples. Parameters without an example are left out. */
export function exampleTarget({ path, params }: Pick<Operation, 'path' | 'params'>): string {
  const query = new URLSearchParams();
  let target = path;
  for (const { name, place, example } of params) {
    if (place === 'path') target = target.replace(`{${name}}`, encodeURIComponent(example));
    else if (example !== '') query.append(name, example);
  }
  return query.size === 0 ? target : `${target}?${query}`;
}

/** How an operation is called with its example parameters. */
export function callExamples(operation: Operation, terms: ExampleTerms): CallExample[] {
  const url = `${terms.origin}${exampleTarget(operation)}`;
  if (operation.tag === 'lightning' && operation.priceUsd !== null) return overLightning(url);
  if (operation.tag === 'mpp') return overMpp(url, operation, terms);
  if (operation.priceUsd !== null) return inUsdc(url, operation, terms);
  return operation.method === 'POST' ? posted(url, operation.body ?? '{}') : free(url);
}

function free(url: string): CallExample[] {
  return [
    { language: 'curl', note: 'no payment, no key', code: `curl -s ${quoteShell(url)}\n` },
    {
      ...{ language: 'TypeScript', note: 'no payment, no key' },
      code: `const answer = await fetch(${quoteScript(url)});\nconsole.log(answer.status, await answer.text());\n`,
    },
    {
      ...{ language: 'Python', note: 'standard library only' },
      code: `import urllib.request

with urllib.request.urlopen(${quoteScript(url)}) as answer:
    print(answer.status, answer.read().decode())
`,
    },
  ];
}

function posted(url: string, body: string): CallExample[] {
  const accept = 'application/json, text/event-stream';
  return [
    {
      ...{ language: 'curl', note: 'no payment, no key' },
      code: `curl -s ${quoteShell(url)} -H 'accept: ${accept}' -H 'content-type: application/json' -d ${quoteShell(body)}\n`,
    },
    {
      ...{ language: 'TypeScript', note: 'no payment, no key' },
      code: `const headers = { accept: '${accept}', 'content-type': 'application/json' };
const answer = await fetch(${quoteScript(url)}, { method: 'POST', headers, body: ${quoteScript(body)} });
console.log(answer.status, await answer.text());
`,
    },
    {
      ...{ language: 'Python', note: 'standard library only' },
      code: `import urllib.error, urllib.request

headers = {'accept': '${accept}', 'content-type': 'application/json'}
call = urllib.request.Request(${quoteScript(url)}, ${quoteScript(body)}.encode(), headers)
try:
    answer = urllib.request.urlopen(call)
except urllib.error.HTTPError as refused:
    answer = refused
print(answer.status, answer.read().decode())
`,
    },
  ];
}

/** Base units of USDC in a price. */
function unitsOf(priceUsd: string | null): string {
  return String(Math.ceil(Number(priceUsd) * 1e6));
}

function inUsdc(url: string, { priceUsd }: Operation, { network, asset }: ExampleTerms): CallExample[] {
  return [
    {
      ...{ language: 'curl', note: 'what it costs; the last line pays, in this service’s own checkout' },
      code: `${askAtWithCurl(url)}\n# BUYER_PRIVATE_KEY=0x… npm run -s pay -- ${quoteShell(url)}\n`,
    },
    {
      ...{ language: 'TypeScript', note: 'buys it with the stock client' },
      code: buyInTypeScript({ network, asset, target: quoteScript(url), maxAmount: unitsOf(priceUsd) }),
    },
    {
      ...{ language: 'Python', note: 'what it costs; standard library only' },
      code: `import base64, json, urllib.error, urllib.request

try:
    urllib.request.urlopen(${quoteScript(url)})
except urllib.error.HTTPError as unpaid:
    terms = json.loads(base64.b64decode(unpaid.headers['PAYMENT-REQUIRED']))
    for way in terms['accepts']:
        print(way['amount'], 'base units of', way['asset'], 'on', way['network'], 'to', way['payTo'])
`,
    },
  ];
}

function overLightning(url: string): CallExample[] {
  return [
    {
      ...{ language: 'curl', note: 'makes the answer and asks for its invoice' },
      code: `curl -s ${quoteShell(url)}\n\n# NWC_PAYER='nostr+walletconnect://…' npm run -s pay -- ${quoteShell(url)}\n`,
    },
    {
      ...{ language: 'TypeScript', note: 'buys it with Alby’s library; wallet has payInvoice' },
      code: `import { fetch402 } from '@getalby/lightning-tools';

const answer = await fetch402(${quoteScript(url)}, {}, { wallet, maxAmount: 50 });
console.log(await answer.json());
`,
    },
    {
      ...{ language: 'Python', note: 'asks for the invoice; standard library only' },
      code: `import json, urllib.error, urllib.request

try:
    urllib.request.urlopen(${quoteScript(url)})
except urllib.error.HTTPError as unpaid:
    print(json.load(unpaid)['accepts'][0]['extra']['invoice'])
`,
    },
  ];
}

function overMpp(url: string, { priceUsd }: Operation, { network, asset }: ExampleTerms): CallExample[] {
  const chainId = network.split(':')[1] ?? '';
  return [
    {
      ...{ language: 'curl', note: 'what it costs' },
      code: `curl -sD- -o /dev/null ${quoteShell(url)} | grep -i '^www-authenticate:'\n`,
    },
    {
      ...{ language: 'TypeScript', note: 'buys it with mppx' },
      code: `import { evm, Fetch } from 'mppx/client';
import { privateKeyToAccount } from 'viem/accounts';

const account = privateKeyToAccount(process.env.BUYER_PRIVATE_KEY as \`0x\${string}\`);
const usdc = { networks: [${chainId}], currencies: ['${asset}'], decimals: 6, maxAmount: '${priceUsd}' };
const methods = evm({ account, ...usdc, authorization: { name: 'USDC', version: '2' } });
const answer = await Fetch.from({ methods })(${quoteScript(url)});
console.log(await answer.json());
`,
    },
    {
      ...{ language: 'Python', note: 'what it costs; standard library only' },
      code: `import urllib.error, urllib.request

try:
    urllib.request.urlopen(${quoteScript(url)})
except urllib.error.HTTPError as unpaid:
    print(unpaid.headers['WWW-Authenticate'])
`,
    },
  ];
}
