/** The client that asks for an offer. */
export interface OfferClient {
  /** The client's key in the limits: an IPv4 address or an IPv6 /64. */
  readonly client: string;
  /** Whether the client has paid here within the last hour, and so may use the reserves. */
  readonly isBuyer: boolean;
}

/** The client for which a new invoice is counted. */
export interface Applicant extends OfferClient {
  /** Whether the client is a newcomer (`newcomers.ts`). */
  readonly isNewcomer: boolean;
}

/** Divides a shared limit: a fifth of it is reserved for buyers. */
export const BUYERS_DIVISOR = 5;
