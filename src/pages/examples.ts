import type { Endpoint } from '../catalogue/endpoint.ts';
import { entriesOn, pathOn } from '../catalogue/paths.ts';

/** The network and token of payments in the examples. */
export interface ExampleTerms {
  /** Scheme, host and port; or a `${…}` expression that reads them from the environment. */
  readonly origin: string;
  readonly network: string;
  readonly asset: string;
}

/** The terms of this service. */
export function termsOf({
  publicOrigin: origin,
  network: { caip2: network, usdc: asset },
}: {
  readonly publicOrigin: string;
  readonly network: { readonly caip2: string; readonly usdc: string };
}): ExampleTerms {
  return { origin, network, asset };
}

/** What is bought. */
interface Purchase extends Pick<ExampleTerms, 'network' | 'asset'> {
  /** The address as an expression of TypeScript: `` `${origin}/…` ``, or what `quoteScript` gives. */
  readonly target: string;
  /** The ceiling of one payment, in base units. */
  readonly maxAmount: string;
  /** Further arguments of `fetch`, with the comma before them. */
  readonly init?: string;
}

/** The call that the examples buy. */
export interface ExampleCall {
  /** The path below the origin, with its query. */
  readonly path: string;
  /** The price of the dearest route, in base units: with it as ceiling a client can buy any route. */
  readonly ceiling: string;
}

/** A request that each of our chains can answer: the wallet of the USDC contract. */
const WALLET = '/chain/wallet';

/**
 * The call of the examples among the routes that are sold in USDC: the wallet of the USDC contract, else the first
 * route with its own example. Null where no route is.
 */
export function exampleCall(catalogue: readonly Endpoint<never>[], asset: string): ExampleCall | null {
  const sold = entriesOn(catalogue, 'paid');
  const shown = sold.find(({ path }) => path === WALLET) ?? sold[0];
  if (!shown) return null;
  const query = new URLSearchParams(shown.path === WALLET ? { address: asset } : shown.example.params);
  const dearest = sold.reduce((most, { price }) => (price && price.units > most ? price.units : most), 0n);
  return { path: `${pathOn(shown, 'paid')}${query.size > 0 ? `?${query}` : ''}`, ceiling: String(dearest) };
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

/** Ten lines that pay for a call with the stock client and print the answer and the transaction. The README shows the same lines. */
export function payInTypeScript({ origin, network, asset }: ExampleTerms, { path, ceiling }: ExampleCall): string {
  return buyInTypeScript({ network, asset, target: `\`${origin}${path}\``, maxAmount: ceiling });
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
const client = new x402Client().register('${network}', new ExactEvmScheme(privateKeyToAccount(process.env.BUYER_PRIVATE_KEY as \`0x\${string}\`)));
const pay = wrapFetchWithPayment(fetch, client.setSpendControls({ allowedAssets: [asset] }));
const answer = await pay(${target}${init});
console.log(answer.status, await answer.json(), JSON.parse(atob(answer.headers.get('PAYMENT-RESPONSE') ?? btoa('{}'))).transaction);
`;
}

/** One line of shell that prints the terms of a 402. */
export function askWithCurl({ origin }: ExampleTerms, { path }: ExampleCall): string {
  return askAtWithCurl(`${origin}${path}`);
}

/** The same for any call. `more` are further arguments, with the space before them. */
export function askAtWithCurl(url: string, more = ''): string {
  return `curl -sD- -o /dev/null ${quoteShell(url)}${more} |
  grep -i '^payment-required:' | cut -d' ' -f2 | tr -d '\\r' | base64 -d
`;
}

/** Reads a free route with Python's standard library. */
export function readInPython({ origin }: ExampleTerms): string {
  return `import json, urllib.request

with urllib.request.urlopen('${origin}/v1/fees') as answer:
    fees = json.load(answer)
print(fees['baseFee']['gwei'], 'gwei at block', fees['baseFee']['block'])
`;
}
