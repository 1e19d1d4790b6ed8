import { z } from 'zod';

/** A compressed public key as every node writes it. */
export const nodeKeyText = z.string().regex(/^0[23][0-9a-f]{64}$/);

/** A node's invoice text. Its length is bounded here; the issuer decodes it strictly. */
export const invoiceText = z.string().min(1).max(4096);
