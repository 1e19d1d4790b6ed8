// The package carries no types and those of DefinitelyTyped describe version 8; this is what we use of version 20.
declare module 'npm-registry-fetch' {
  interface Options {
    registry?: string;
    headers?: Record<string, string>;
    userAgent?: string;
    fetchRetries?: number;
    signal?: AbortSignal;
  }
  interface RegistryResponse {
    readonly status: number;
    readonly url: string;
    readonly headers: Iterable<[string, string]>;
    readonly body: AsyncIterable<Buffer>;
  }
  function registryFetch(url: string, options?: Options): Promise<RegistryResponse>;
  namespace registryFetch {
    /** The registry for a package: `options.registry`, else the library's own default. */
    function pickRegistry(spec: string, options?: Options): string;
  }
  export default registryFetch;
}
