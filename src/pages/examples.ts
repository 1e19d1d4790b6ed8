/** Where and in what the examples pay. */
interface ExampleTerms {
  /** Scheme, host and port; also `${…}` for whoever reads it from the environment. */
  readonly origin: string;
  readonly network: string;
  readonly asset: string;
}

/** Something that can be asked about on every chain of ours: the token that is paid in. */
const walletPath = (asset: string) => `/v1/paid/chain/wallet?address=${asset}`;

/** Ten lines that pay for a call with the stock client and print the answer and the transaction. The README shows the same. */
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

/** One line of shell that shows what a 402 asks for. */
export function askWithCurl({ origin, asset }: ExampleTerms): string {
  return `curl -sD- -o /dev/null '${origin}${walletPath(asset)}' |
  grep -i '^payment-required:' | cut -d' ' -f2 | tr -d '\\r' | base64 -d
`;
}

/** A free route with nothing but Python's standard library. */
export function readInPython({ origin }: ExampleTerms): string {
  return `import json, urllib.request

with urllib.request.urlopen('${origin}/v1/fees') as answer:
    fees = json.load(answer)
print(fees['baseFee']['gwei'], 'gwei at block', fees['baseFee']['block'])
`;
}
