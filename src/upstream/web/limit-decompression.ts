type Format = 'deflate' | 'deflate-raw' | 'gzip';

/**
 * Bounds what any DecompressionStream that this thread makes from now on may decode to, in bytes. One that decodes to more calls `onTooMuch` and fails.
 * It is for a library that inflates with the platform's decoder and takes no limit itself. The counting stream also holds the decoder back to its
 * reader's pace. Without it a PDF's stream of 20 MB takes more memory than a thread may have.
 */
export function limitDecompression(maxBytes: number, onTooMuch: () => void): void {
  const { DecompressionStream: Unbounded } = globalThis;
  // A function and not an arrow, because it is called with `new`.
  function DecompressionStream(format: Format): DecompressionStream {
    const { readable, writable } = new Unbounded(format);
    let bytes = 0;
    const count = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(chunk, controller) {
        bytes += chunk.length;
        if (bytes <= maxBytes) return controller.enqueue(chunk);
        onTooMuch();
        throw new RangeError(`a stream decodes to more than ${maxBytes} bytes`);
      },
    });
    return { readable: readable.pipeThrough(count), writable };
  }
  globalThis.DecompressionStream = DecompressionStream as unknown as typeof Unbounded;
}
