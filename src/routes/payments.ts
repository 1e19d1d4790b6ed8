import type { FastifyInstance } from 'fastify';
import { acceptsHtml } from '../http/accepts-html.ts';
import { sendOnce } from '../pages/send.ts';
import type { FoundPayment } from '../payment/receipt.ts';

/** Finds payments by an identifier; throws NotFound when there is none. */
export type Lookup = (id: string) => Promise<{ readonly payments: readonly FoundPayment[] }>;

/** Renders the receipt of payments for people. */
export type ReceiptPage = (id: string, payments: readonly FoundPayment[]) => string;

/**
 * Mounts the payment lookup: a caller who knows the nonce or the hash learns what happened to the money. A browser gets a page, where there is one.
 */
export function mountLookup(app: FastifyInstance, lookup: Lookup, receiptPage?: ReceiptPage): void {
  const url = '/v1/payments/:id';
  app.route<{ Params: { id: string } }>({
    method: ['GET', 'HEAD'],
    url,
    handler: async (request, reply) => {
      const { id } = request.params;
      const found = await lookup(id);
      if (receiptPage && acceptsHtml(request)) return sendOnce(reply, receiptPage(id, found.payments));
      return reply.headers({ 'cache-control': 'no-store', vary: 'accept' }).send(found);
    },
  });
}
