/** A channel's state as JSON, for `channel_after`, with this expression as its balance. Amounts are text, because JSON's numbers are not exact. */
export const afterWith = (balance: string): string => `json_build_object('balance', (${balance})::text,
           'totalClaimed', total_claimed::text, 'withdrawAmount', withdraw_amount::text, 'withdrawAt', withdraw_at,
           'refundNonce', refund_nonce::text)::text`;
