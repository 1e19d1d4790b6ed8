/** The network, token and address in the examples. */
interface ExampleTerms {
  /** Scheme, host and port; or a `${…}` expression that reads them from the environment. */
  readonly origin: string;
  readonly network: string;
  readonly asset: string;
}

/** The path of a request that every one of our chains can answer: the wallet of the USDC contract. */
const walletPath = (asset: string) => `/v1/paid/chain/wallet?address=${asset}`;

/** Ten lines that pay for a call with the stock client and print the answer and the transaction. The README shows the same lines. */
export function payInTypeScript({ origin, network, asset }: ExampleTerms): string {
  return `import { x402Client } from '@x402/core/client';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment } from '@x402/fetch';
import { privateKeyToAccount } from 'viem/accounts';

const asset = { network: '${network}', asset: '${asset}', maxAmountPerPayment: '5000' } as const;
const client = new x402Client().register('${network}', new ExactEvmScheme(privateKeyToAccount(process.env.BUYER_PRIVATE_KEY as \`0x\${string}\`)));
const pay = wrapFetchWithPayment(fetch, client.setSpendControls({ allowedAssets: [asset] }));
const answer = await pay(\`${origin}${walletPath(asset)}\`);
console.log(await answer.json(), JSON.parse(atob(String(answer.headers.get('PAYMENT-RESPONSE')))).transaction);
`;
}

/** One line of shell that prints the terms of a 402. */
export function askWithCurl({ origin, asset }: ExampleTerms): string {
  return `curl -sD- -o /dev/null '${origin}${walletPath(asset)}' |
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
