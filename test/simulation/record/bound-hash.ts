import { createHash } from 'node:crypto';

const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');

/** The hash that an invoice for an HTTP request signs: of the canonical JSON of the scheme's binding, whose body is empty. */
export function boundHash(url: string): string {
  const domain = 'x402:exact:lnbtc:bolt11:http:1';
  return sha256(
    `{"bodyHash":"${sha256('')}","domain":"${domain}","headers":[],"method":"GET","url":${JSON.stringify(url)}}`,
  );
}
