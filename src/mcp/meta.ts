/** The member of a call's `_meta` in which x402's MCP transport carries a payment. */
export const PAYMENT = 'x402/payment';
/** The member of a result's `_meta` in which it carries the receipt. */
export const RECEIPT = 'x402/payment-response';
/** Our own member of `_meta`: the rail that a call without a payment asks to be offered. */
export const RAIL = 'percall/rail';
