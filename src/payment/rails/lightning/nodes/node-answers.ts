import { z } from 'zod';

/** A compressed public key as every node writes it. */
export const nodeKeyText = z.string().regex(/^0[23][0-9a-f]{64}$/);

/** What a node calls an invoice: bounded here, decoded strictly by the issuer. */
export const invoiceText = z.string().min(1).max(4096);
