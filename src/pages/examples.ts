import type { Endpoint } from '../catalogue/endpoint.ts';
import { entriesOn, pathOn } from '../catalogue/paths.ts';
import type { Operation } from './reference-document.ts';

// The code that pages and the README show: how a call is paid for, how any operation is called.

export interface ExampleTerms {
  /** An origin, or a `${…}` expression that reads it from the environment. */
  readonly origin: string;
  readonly network: string;
  readonly asset: string;
}

export function termsOf({
  publicOrigin: origin,
  network: { caip2: network, usdc: asset },
}: {
  readonly publicOrigin: string;
  readonly network: { readonly caip2: string; readonly usdc: string };
}): ExampleTerms {
  return { origin, network, asset };
}

export interface ExampleCall {
  /** The path below the origin, with its query. */
  readonly path: string;
  /** The price of the dearest route, in base units: with it as ceiling a client can buy any route. */
  readonly ceiling: string;
}

/** Each of our chains can answer a request for the wallet of the USDC contract. */
const WALLET = '/chain/wallet';

/** The call of the examples: the wallet of the USDC contract, else the first route's own example. Null without one. */
export function exampleCall(catalogue: readonly Endpoint<never>[], asset: string): ExampleCall | null {
  const sold = entriesOn(catalogue, 'paid');
  const shown = sold.find(({ path }) => path === WALLET) ?? sold[0];
  if (!shown) return null;
  const query = new URLSearchParams(shown.path === WALLET ? { address: asset } : shown.example.params);
  const dearest = sold.reduce((most, { price }) => (price && price.units > most ? price.units : most), 0n);
  return { path: `${pathOn(shown, 'paid')}${query.size > 0 ? `?${query}` : ''}`, ceiling: String(dearest) };
}

/** Ten lines that pay for a call with the stock client. */
export function payInTypeScript({ origin, network, asset }: ExampleTerms, { path, ceiling }: ExampleCall): string {
  return buyInTypeScript({ network, asset, target: `\`${origin}${path}\``, maxAmount: ceiling });
}

interface Purchase extends Pick<ExampleTerms, 'network' | 'asset'> {
  /** The address as an expression of TypeScript: `` `${origin}/…` ``, or what `quoteScript` gives. */
  readonly target: string;
  /** The ceiling of one payment, in base units. */
  readonly maxAmount: string;
  /** Further arguments of `fetch`, with the comma before them. */
  readonly init?: string;
}

/** Ten lines for any call. They say which variable of the environment is missing. */
export function buyInTypeScript({ network, asset, target, maxAmount, init = '' }: Purchase): string {
  const needed = ['BUYER_PRIVATE_KEY', ...(target.includes('process.env.ORIGIN') ? ['ORIGIN'] : [])];
  const names = needed.map(quoteScript).join(', ');
  return `import { x402Client } from '@x402/core/client';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';
for (const name of [${names}]) if (!process.env[name]) throw new Error(\`\${name} is not set\`);
const asset = { network: '${network}', asset: '${asset}', maxAmountPerPayment: '${maxAmount}' } as const;
const client = new x402Client().register('${network}', new ExactEvmScheme(\
privateKeyToAccount(process.env.BUYER_PRIVATE_KEY as \`0x\${string}\`)));
const pay = wrapFetchWithPayment(fetch, client.setSpendControls({ allowedAssets: [asset] }));
const answer = await pay(${target}${init});
console.log(answer.status, await answer.json(), \
JSON.parse(atob(answer.headers.get('PAYMENT-RESPONSE') ?? btoa('{}'))).transaction);
`;
}

export function askWithCurl({ origin }: ExampleTerms, { path }: ExampleCall): string {
  return askAtWithCurl(`${origin}${path}`);
}

/** `more` are further arguments, with the space before them. */
export function askAtWithCurl(url: string, more = ''): string {
  return `curl -sD- -o /dev/null ${quoteShell(url)}${more} |
  grep -i '^payment-required:' | cut -d' ' -f2 | tr -d '\\r' | base64 -d
`;
}

/** The command of this service's own buyer. It pays at most the price. */
export function payWithCommand(url: string, usd: string): { title: string; note: string; code: string } {
  const code = `BUYER_PRIVATE_KEY=0x… npx ./percall-*.tgz pay ${quoteShell(url)} --max-usdc ${usd}\n`;
  return { title: 'percall', note: 'from a terminal, never more than the price, never twice', code };
}

export function readInPython({ origin }: ExampleTerms): string {
  return `import json, urllib.request

with urllib.request.urlopen('${origin}/v1/fees') as answer:
    fees = json.load(answer)
print(fees['baseFee']['gwei'], 'gwei at block', fees['baseFee']['block'])
`;
}

/** Text as a quoted string of the shell. A third party's text cannot end it. */
export function quoteShell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Text as a string of TypeScript and of Python. A third party's text cannot end it, and no part of it is evaluated. */
export function quoteScript(text: string): string {
  const escapes: Record<string, string> = {
    '\\': '\\\\',
    "'": "\\'",
    '\n': '\\n',
    '\r': '\\r',
    '\u2028': '\\u2028',
    '\u2029': '\\u2029',
  };
  return `'${text.replace(/[\\'\n\r\u2028\u2029]/g, (character) => escapes[character] ?? '')}'`;
}

export interface CallExample {
  readonly language: 'curl' | 'TypeScript' | 'Python';
  readonly note: string;
  readonly code: string;
}

export function callExamples(operation: Operation, terms: ExampleTerms): CallExample[] {
  const url = `${terms.origin}${exampleTarget(operation)}`;
  if (operation.tag === 'lightning' && operation.priceUsd !== null) return overLightning(url);
  if (operation.tag === 'mpp') return overMpp(url, operation, terms);
  if (operation.priceUsd !== null) return inUsdc(url, operation, terms);
  return operation.method === 'POST' ? posted(url, operation.body ?? '{}') : free(url);
}

/** Path and query with the operation's examples. A parameter without one is left out. */
export function exampleTarget({ path, params }: Pick<Operation, 'path' | 'params'>): string {
  const query = new URLSearchParams();
  let target = path;
  for (const { name, place, example } of params) {
    if (place === 'path') target = target.replace(`{${name}}`, encodeURIComponent(example));
    else if (example !== '') query.append(name, example);
  }
  return query.size === 0 ? target : `${target}?${query}`;
}

function free(url: string): CallExample[] {
  return [
    { language: 'curl', note: 'no payment, no key', code: `curl -s ${quoteShell(url)}\n` },
    {
      language: 'TypeScript',
      note: 'no payment, no key',
      code: `const answer = await fetch(${quoteScript(url)});\nconsole.log(answer.status, await answer.text());\n`,
    },
    {
      language: 'Python',
      note: 'standard library only',
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
      language: 'curl',
      note: 'no payment, no key',
      code: `curl -s ${quoteShell(url)} -H 'accept: ${accept}' -H 'content-type: application/json' \
-d ${quoteShell(body)}\n`,
    },
    {
      language: 'TypeScript',
      note: 'no payment, no key',
      code: `const headers = { accept: '${accept}', 'content-type': 'application/json' };
const answer = await fetch(${quoteScript(url)}, { method: 'POST', headers, body: ${quoteScript(body)} });
console.log(answer.status, await answer.text());
`,
    },
    {
      language: 'Python',
      note: 'standard library only',
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

function unitsOf(priceUsd: string | null): string {
  return String(Math.ceil(Number(priceUsd) * 1e6));
}

function inUsdc(url: string, { priceUsd }: Operation, { network, asset }: ExampleTerms): CallExample[] {
  return [
    {
      language: 'curl',
      note: 'what it costs; the last line pays, in this service’s own checkout',
      code: `${askAtWithCurl(url)}\n# BUYER_PRIVATE_KEY=0x… npm run -s pay -- ${quoteShell(url)}\n`,
    },
    {
      language: 'TypeScript',
      note: 'buys it with the stock client',
      code: buyInTypeScript({ network, asset, target: quoteScript(url), maxAmount: unitsOf(priceUsd) }),
    },
    {
      language: 'Python',
      note: 'what it costs; standard library only',
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
      language: 'curl',
      note: 'makes the answer and asks for its invoice',
      code: `curl -s ${quoteShell(url)}

# NWC_PAYER='nostr+walletconnect://…' npm run -s pay -- ${quoteShell(url)}
`,
    },
    {
      language: 'TypeScript',
      note: 'buys it with Alby’s library; wallet has payInvoice',
      code: `import { fetch402 } from '@getalby/lightning-tools';

const answer = await fetch402(${quoteScript(url)}, {}, { wallet, maxAmount: 50 });
console.log(await answer.json());
`,
    },
    {
      language: 'Python',
      note: 'asks for the invoice; standard library only',
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
      language: 'curl',
      note: 'what it costs',
      code: `curl -sD- -o /dev/null ${quoteShell(url)} | grep -i '^www-authenticate:'\n`,
    },
    {
      language: 'TypeScript',
      note: 'buys it with mppx',
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
      language: 'Python',
      note: 'what it costs; standard library only',
      code: `import urllib.error, urllib.request

try:
    urllib.request.urlopen(${quoteScript(url)})
except urllib.error.HTTPError as unpaid:
    print(unpaid.headers['WWW-Authenticate'])
`,
    },
  ];
}
