/** One JSON-RPC call. */
export interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** What a node answered to one call of a batch. */
export type RpcOutcome = { readonly result: unknown } | { readonly error: RpcError };

export interface RpcOptions {
  readonly signal?: AbortSignal;
}

/**
 * The node understood and said no (a revert, an unknown method): asking another provider would not help.
 * `code` and `data` are the node's own.
 */
export class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.name = 'RpcError';
    this.code = code;
    this.data = data;
  }
}

/**
 * JSON-RPC over the configured providers, tried in order, each with the time-out.
 * Failing over: transport errors, time-outs, HTTP 4xx/5xx, rate limits, answers that are no JSON-RPC. When none answers: UpstreamFailed (502).
 */
export interface ChainClient {
  readonly chainId: number;
  /** Scheme and host of the first provider, for `source.url`: keys live in paths. */
  readonly publicUrl: string;
  request<T>(method: string, params: readonly unknown[], options?: RpcOptions): Promise<T>;
  /** One HTTP request, one outcome for each call, in order. */
  batch(calls: readonly RpcCall[], options?: RpcOptions): Promise<RpcOutcome[]>;
}
