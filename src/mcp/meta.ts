/** Where x402's MCP transport carries a payment: in the call's `_meta`. */
export const PAYMENT = 'x402/payment';
/** Where it carries the receipt: in the result's `_meta`. */
export const RECEIPT = 'x402/payment-response';
/** Ours: which rail a call that carries no payment yet wants to be offered, in its `_meta`. */
export const RAIL = 'percall/rail';
