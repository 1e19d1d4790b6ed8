/** A channel's state as JSON, for `channel_after`. Amounts are text, because JSON's numbers are not exact. */
export const AFTER = `json_object('balance', CAST(balance AS TEXT), 'totalClaimed', CAST(total_claimed AS TEXT),
           'withdrawAmount', CAST(withdraw_amount AS TEXT), 'withdrawAt', withdraw_at, 'refundNonce', CAST(refund_nonce AS TEXT))`;
