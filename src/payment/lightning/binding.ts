/** A request bound into an invoice: the canonical JSON and its SHA-256. */
export interface Binding {
  readonly canonical: string;
  /** 32 bytes. */
  readonly hash: Uint8Array;
}

/** The request that will run, for profile `http:1`. Header values are joined field lines; names are lower-case. */
export interface HttpRequest {
  readonly method: string;
  /** Absolute: the configured origin and the raw target, byte for byte. */
  readonly url: string;
  readonly body: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** Names of bound headers, as in `requestBindingParams.headers`; none by default. */
  readonly bound?: readonly string[];
}

/** The binding of an HTTP request, or null when the scheme cannot express it (a fragment, non-ASCII, bad names or values). Never throws. */
export function bindHttp(_request: HttpRequest): Binding | null {
  throw new Error('not written yet');
}

/** A call of an MCP tool, for profile `mcp:1`. */
export interface McpCall {
  readonly server: string;
  readonly name: string;
  /** `{}` when left out. */
  readonly arguments?: unknown;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly bound?: readonly string[];
}

/** The binding of a tool call, or null when the scheme cannot express it. Never throws. */
export function bindMcp(_call: McpCall): Binding | null {
  throw new Error('not written yet');
}
