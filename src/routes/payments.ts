import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { acceptsHtml } from '../http/answers.ts';
import { defineRoute, inJson, problem, said, saidOrNull, serve, whole, wholeOrNull } from '../http/openapi/route.ts';
import type { Limited } from '../http/rate-limit.ts';
import { sendOnce } from '../pages/send.ts';
import type { FoundPayment } from '../payment/receipt.ts';

/** Throws NotFound when there is none. */
type Lookup = (id: string) => Promise<{ readonly payments: readonly FoundPayment[] }>;

type ReceiptPage = (id: string, payments: readonly FoundPayment[]) => string;

export interface Lookups {
  readonly lookup: Lookup;
  /** Absent: every lookup is answered in JSON. */
  readonly receiptPage?: ReceiptPage;
}

const FOUND_PAYMENT = z.object({
  rail: z.enum(['usdc', 'lightning']),
  amount: said('Base units of USDC (6 decimals), or millisatoshis'),
  state: z.enum(['reserved', 'settling', 'settled', 'unknown', 'failed', 'claimed', 'delivered']).meta({
    description:
      'USDC: reserved (the answer is being made), settling, settled, unknown (no final answer yet), ' +
      'failed (no money moved). Lightning: claimed (paid, not fetched yet), delivered',
  }),
  transaction: saidOrNull('Transaction hash, payment hash, or the Gateway’s transfer id; null while there is none'),
  block: wholeOrNull('Of the transaction; null while unknown, and over Lightning'),
  at: whole('Unix seconds of its newest step'),
  explorerUrl: saidOrNull('The transaction at the chain’s explorer'),
  protocol: saidOrNull('The protocol that presented the payment: x402, l402 or mpp. Null where none is noted.'),
});

export const LOOKUP = defineRoute('GET', '/v1/payments/:id', {
  id: 'payment',
  tag: 'meta',
  summary:
    'What became of a payment, by authorization nonce, transaction hash or payment hash; never who paid or for what.',
  description:
    'Free, for anyone who knows the identifier. One transaction may settle several payments, so the answer is a ' +
    'list. Use it after a 503 or a lost connection: `settled`, `claimed` and `delivered` mean that the payment was ' +
    'taken, `failed` that it was not, and `reserved`, `settling` and `unknown` that it is open: present the same ' +
    'payment again.',
  path: z.object({
    id: z.string().meta({
      description:
        'The nonce of a USDC authorization, the hash of its transaction, or the payment hash of an invoice: ' +
        '32 bytes in hex, with or without 0x. Or the id of a Gateway transfer (a UUID)',
      examples: [`0x${'5e'.repeat(32)}`],
    }),
  }),
  answers: {
    200: inJson(z.object({ payments: z.array(FOUND_PAYMENT) }), 'The payments of this identifier'),
    404: problem('The ledger knows no such payment'),
  },
});

/** The lookup: who knows a nonce or hash learns what happened to the money. A browser may get a page. */
export async function lookupRoutes(
  app: FastifyInstance,
  { lookup, receiptPage, limits }: Lookups & Limited,
): Promise<void> {
  limits.free(app);
  serve(app, LOOKUP, async (request, reply) => {
    const { id } = request.params as { id: string };
    const found = await lookup(id);
    if (receiptPage && acceptsHtml(request)) return sendOnce(reply, receiptPage(id, found.payments));
    return reply.headers({ 'cache-control': 'no-store', vary: 'accept' }).send(found);
  });
}
