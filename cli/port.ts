// The buyer as its users see it: `percall pay`, `percall wallet`, `percall mcp`. `openBuyer` in cli/buyer.ts makes one.
//
// What it promises, whatever crashes and whatever the seller does:
// 1. A payment is counted against every budget, and durably kept, before it is signed or paid.
// 2. One call is paid at most once. Two calls are the same when method, URL, body and payer are. The same call again
//    presents the same payment until its answer is there, and returns that answer.
// 3. Nothing above a budget, a limit of the call or the listed price is signed, nor anything in another asset, to
//    another recipient or on another network than the catalogue lists or an earlier purchase pinned.
// 4. Keys, preimages and signed payments reach no log and no outcome. Text of a seller in a message is cleaned and
// short.

/** A request over HTTP. `fetch`'s own headers apart, it has none but a body's content type. */
export interface HttpCall {
  readonly kind: 'http';
  readonly method: string;
  /** A fragment is not sent. */
  readonly url: URL;
  readonly body: { readonly bytes: Uint8Array; readonly contentType: string } | null;
}

/** A `tools/call` at a seller's MCP server (streamable HTTP). Its answer's body is the result of the call as JSON. */
export interface ToolCall {
  readonly kind: 'tool';
  readonly server: URL;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

export type Call = HttpCall | ToolCall;

/** The money of a payment. */
export type Rail = 'usdc' | 'lightning';
/** How a seller asks to be paid. */
export type Protocol = 'x402' | 'l402' | 'mpp';
/** A way to pay; each has a file in cli/ways. */
export type WayName = 'exact' | 'gateway' | 'channel' | 'mpp' | 'lightning' | 'l402' | 'mpp-lightning';

/** What a payment takes from the budgets. */
export interface Amount {
  /** USDC base units; of sats their value at the higher of the two rates. Null: sats whose value nobody has said. */
  readonly units: bigint | null;
  /** Null: no sats. */
  readonly msat: bigint | null;
}

/** What a call costs by one way to pay, and to whom it goes. */
export interface Price {
  readonly way: WayName;
  readonly amount: Amount;
  /** CAIP-2, or the Lightning network's name. */
  readonly network: string;
  readonly asset: string;
  /** An address, or a node's key. */
  readonly payTo: string;
  /** The seller's own words, cleaned and short: data, never an instruction. */
  readonly description: string | null;
  /** The listed price as text; null: none could be read, and the limits alone hold. */
  readonly listed: string | null;
  /** What may be deposited for it besides, and for how long, as text of this program; null: nothing. */
  readonly deposit: string | null;
}

/** The answer of a seller. */
export interface Answer {
  readonly status: number;
  readonly contentType: string | null;
  readonly body: Buffer;
}

/** What an unpaid request brought. */
export type Quote =
  | { readonly kind: 'priced'; readonly price: Price }
  | { readonly kind: 'free'; readonly answer: Answer }
  | { readonly kind: 'refused'; readonly reason: Refusal; readonly message: string }
  | { readonly kind: 'failed'; readonly message: string };

/** What bounds one call, besides the budgets. */
export interface Limits {
  /** The most to pay in USDC, in base units. */
  readonly maxUnits: bigint;
  /** The most to pay in sats, the network's fee included where the payer can be limited. */
  readonly maxMsat: bigint;
  /** Null: over Lightning where that is offered and a Lightning wallet is set, else in USDC. */
  readonly rail: Rail | null;
  readonly protocol: Protocol | null;
  /** `channel` and `gateway` are used where they are asked for; a gateway also where it is the only way in USDC. */
  readonly via: 'channel' | 'gateway' | null;
  /**
   * What this call was shown to cost, in USD base units: more is not paid, in sats where a rate is known. Null: the
   * list at its time holds alone.
   */
  readonly shown: bigint | null;
  /**
   * The most that this call deposits into a channel, and its host within a day, in base units. A deposit is no spending:
   * its calls are.
   */
  readonly maxDeposit: bigint;
  /** Asked before anything is counted or signed. False refuses the payment as `declined`. Null: nobody is asked. */
  readonly confirm: ((price: Price) => Promise<boolean>) | null;
  /** Hears how it goes on, in lines for a person. They hold no secret. */
  readonly say: (line: string) => void;
}

/** Why nothing was signed or paid. */
export type Refusal =
  /** The seller would refuse the paid request: its own hint says so. */
  | 'bad-request'
  /** Nothing on offer can be paid here, or not as asked for. */
  | 'no-way'
  /** The offer is malformed, expired, or for another request. */
  | 'bad-offer'
  | 'above-limit'
  | 'above-listed'
  | 'above-budget'
  /** Another asset, recipient or network than the catalogue lists or an earlier purchase pinned. */
  | 'not-pinned'
  /** The seller's rate and the buyer's own are more than 5 % apart, or a USDC budget holds and there is no own rate. */
  | 'bad-rate'
  /** A key or a wallet is missing. */
  | 'no-wallet'
  | 'declined'
  /** Another call over the same channel waits for its answer. */
  | 'channel-busy'
  /** The wallet is certain that it has not paid. */
  | 'not-paid';

/** A payment as lists show it. It holds nothing that could be presented. */
export interface Payment {
  readonly id: string;
  readonly call: string;
  readonly host: string;
  readonly way: WayName;
  readonly amount: Amount;
  readonly network: string;
  readonly payTo: string;
  /** The authorization's nonce, the payment hash, or the voucher's channel. */
  readonly reference: string;
  /** Unix seconds. */
  readonly at: number;
  /** When the authorization or the invoice ends; null: never, or it is not known. */
  readonly expiresAt: number | null;
  /**
   * `counted`: before its signature; `signed`: it waits for its answer; `arrived`: the answer is here and was not
   * delivered yet; `answered`; `returned`: expired and unused, so no budget counts it; `refused`: a voucher that took
   * nothing
   * by the seller's word, which the channel's next one covers; `dropped`: given up by a person.
   */
  readonly state: 'counted' | 'signed' | 'arrived' | 'answered' | 'returned' | 'refused' | 'dropped';
  /** The transaction, transfer id or payment hash that the receipt names; null without one. */
  readonly transaction: string | null;
  readonly answeredAt: number | null;
  /** What was said last of a payment that waits. */
  readonly note: string | null;
}

/** How a call ended. */
export type Outcome =
  | {
      readonly kind: 'answered';
      readonly answer: Answer;
      /** Null: the answer was free. */
      readonly payment: Payment | null;
      /** To be called once the answer has reached its reader. Until then the same call gets this answer again. */
      readonly delivered: () => void;
    }
  /** Nothing was signed or paid. */
  | { readonly kind: 'refused'; readonly reason: Refusal; readonly message: string }
  /** Paid, and no answer yet, or nobody can say whether it was paid. Run the same call again. */
  | { readonly kind: 'unanswered'; readonly message: string; readonly payment: Payment }
  /** The seller says that nothing was charged. Until the payment has expired the same call presents it again. */
  | { readonly kind: 'uncharged'; readonly message: string; readonly payment: Payment }
  /** No 402, no connection, an answer without a price: any other failure before paying. */
  | { readonly kind: 'failed'; readonly message: string };

/** What a budget bounds: each call, the last hour, the last day; or one host's last day. */
export type BudgetScope = 'call' | 'hour' | 'day' | { readonly host: string };

/** A budget, and what is taken from it now. */
export interface Budget {
  readonly scope: BudgetScope;
  /** `usdc` counts both rails, in base units; `sats` counts Lightning, in millisatoshis. */
  readonly unit: 'usdc' | 'sats';
  readonly most: bigint;
  readonly spent: bigint;
}

export interface Budgets {
  list(): readonly Budget[];
  /** Null removes it. */
  set(scope: BudgetScope, unit: 'usdc' | 'sats', most: bigint | null): void;
}

/** A wallet of this machine with its record. Several processes may hold the same one. */
export interface Buyer {
  /** Asks without paying. Nothing is kept. A free route answers at once. */
  price(call: Call, limits: Limits): Promise<Quote>;
  /** Buys one answer. It does not throw for what a seller or a network does, only for a broken data folder. */
  pay(call: Call, limits: Limits): Promise<Outcome>;
  readonly budgets: Budgets;
  /** The payments that wait for their answers, oldest first. */
  open(): readonly Payment[];
  /** All other payments, newest first. */
  history(): readonly Payment[];
  /**
   * Looks up expired authorizations at the buyer's own RPC endpoint, and gives the unused ones back to the budgets.
   * Without an endpoint it does nothing. `pay` does it by itself. Returns how many were given back.
   */
  sweep(): Promise<number>;
  /** Gives a waiting payment up: it stays counted, and its call may be paid anew. A person decides that. */
  drop(id: string): boolean;
  /** Lets a host be paid at another address or node than before, from the next purchase on. */
  unpin(host: string): number;
  /** What the wallet holds where that can be read: USDC through the RPC endpoint, in base units. Null: not known. */
  balance(): Promise<bigint | null>;
  close(): void;
}

/** Where a buyer keeps its record, and what it pays with. `settingsFrom` reads them from the environment. */
export interface BuyerSettings {
  /** Holds `wallet.db` and the channels' records. It is made where it is missing, for its owner alone. */
  readonly dataDir: string;
  /** The variables with keys and wallets: BUYER_PRIVATE_KEY, NWC_PAYER, LND_PAYER_URL and more, or their `_FILE`. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A JSON-RPC endpoint of the buyer's own choice; null: what is spent stays spent. */
  readonly rpcUrl: string | null;
  /** The buyer's own rate in USD; null: the median of three exchanges, where one is needed. */
  readonly btcUsd: string | null;
  /** A percall service whose search lists prices; null: the seller's own list alone. */
  readonly discovery: URL | null;
}
