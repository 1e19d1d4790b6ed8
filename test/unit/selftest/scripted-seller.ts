import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { USDC } from '../../support/usdc/payments.ts';

export const SELLER = '0x00000000000000000000000000000000005e11e4';

/** The terms of a challenge. A test changes them into wrong ones. */
export const TERMS = {
  scheme: 'exact',
  network: 'eip155:5042',
  asset: USDC as string,
  amount: '500',
  payTo: SELLER as string,
  maxTimeoutSeconds: 604_900,
  extra: { name: 'USDC', version: '2', assetTransferMethod: 'eip3009' },
};

/** The presented authorization, decoded. */
export interface Shown {
  readonly from: string;
  readonly to: string;
  readonly value: string;
  readonly nonce: `0x${string}`;
}

type Answer = (response: ServerResponse, shown: Shown) => void;

/** A seller on loopback with the terms and answers that the test sets. */
export async function startScriptedSeller() {
  const shown: Shown[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    const header = request.headers['payment-signature'];
    if (header === undefined) return self.challenge(response, path);
    const { payload } = JSON.parse(Buffer.from(String(header), 'base64').toString('utf8'));
    shown.push(payload.authorization);
    return (self.answers[path] ?? ok)(response, payload.authorization);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const self = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    shown: shown as readonly Shown[],
    terms: TERMS,
    challenge: (response: ServerResponse, path: string): void => {
      const resource = { url: self.url + path, description: 'x', mimeType: 'application/json' };
      const challenge = { x402Version: 2, error: 'pay', resource, accepts: [self.terms] };
      response.writeHead(402, { 'payment-required': encoded(challenge) }).end('{"hint":"pay"}');
    },
    /** By path. A path without an entry is answered correctly. */
    answers: {} as Record<string, Answer>,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return self;
}

export type ScriptedSeller = Awaited<ReturnType<typeof startScriptedSeller>>;

/** The transaction in every good receipt. */
export const TRANSACTION = `0x${'7a'.repeat(32)}` as const;

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64');

export const receipt = (changes: object = {}) => ({
  'payment-response': encoded({ success: true, transaction: TRANSACTION, network: 'eip155:5042', ...changes }),
});

const ok: Answer = (response) => {
  response.writeHead(200, receipt()).end('{"data":1}');
};

/** Answers with this status and no body. */
export const status =
  (code: number): Answer =>
  (response) => {
    response.writeHead(code).end('{}');
  };
