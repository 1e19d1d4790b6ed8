/** Who asks for an offer, as limits see it. */
export interface Asker {
  /** An IPv4 address or an IPv6 /64. */
  readonly client: string;
  /** Whether the client has paid here lately, and so may draw on the reserves. */
  readonly isBuyer: boolean;
}

/** The same where new invoices are counted. */
export interface Applicant extends Asker {
  /** Whether the client comes new (`newcomers.ts`). */
  readonly isNewcomer: boolean;
}

/** The part of what all clients share, a fifth, that only buyers may draw on. */
export const BUYERS_PART = 5;
