// The package ships no types, and DefinitelyTyped's stop at version 3, before XML.
declare module 'html-encoding-sniffer' {
  interface Options {
    readonly xml?: boolean;
    /** From the Content-Type header. */
    readonly transportLayerEncodingLabel?: string | undefined;
    readonly defaultEncoding?: string;
  }
  /** The Encoding Standard's name of the bytes' encoding. */
  export default function sniff(bytes: Uint8Array, options?: Options): string;
}
