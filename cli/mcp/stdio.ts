import type { Readable, Writable } from 'node:stream';
import { deserializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/sdk/types.js';

// MCP over this process's own input and output: one message a line. The SDK's transport does not tell when a message
// was written or that its host has gone, and ends for good at a long line.

/** A longer line is skipped. */
const MOST_BYTES = 8 * 1024 * 1024;
/** So many bad lines are told. */
const MOST_TOLD = 5;

export interface Stdio extends Transport {
  /** Aborted once the host has closed the input: nobody can be asked any more. */
  readonly gone: AbortSignal;
  /** Hears that the result of a request was written. It is forgotten with the signal. */
  whenSent(id: RequestId, sent: () => void, signal: AbortSignal): void;
  /** Resolves once everything that was to be sent is written, or cannot be. */
  flushed(): Promise<void>;
}

export function createStdio(input: Readable, output: Writable, say: (line: string) => void): Stdio {
  const gone = new AbortController();
  const waiting = new Map<RequestId, () => void>();
  let told = 0;
  let last: Promise<unknown> = Promise.resolve();
  const skip = (what: string): void => {
    told += 1;
    if (told <= MOST_TOLD) say(`warning: ${what} on standard input is skipped`);
  };
  const read = lines(
    (line) => {
      if (line.trim() === '') return;
      let message: JSONRPCMessage;
      try {
        message = deserializeMessage(line);
      } catch {
        skip('a line that is no message of MCP');
        return;
      }
      stdio.onmessage?.(message);
    },
    () => skip(`a line of more than ${MOST_BYTES} bytes`),
  );
  const stdio: Stdio = {
    gone: gone.signal,
    async start() {
      input.on('data', read);
      for (const end of ['end', 'close', 'error']) input.once(end, () => gone.abort());
    },
    async send(message) {
      const writing = new Promise<void>((written, reject) => {
        output.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : written()));
      });
      last = writing.catch(() => {});
      await writing;
      if (!('id' in message) || !('result' in message) || message.id === undefined) return;
      const sent = waiting.get(message.id);
      waiting.delete(message.id);
      sent?.();
    },
    async flushed() {
      // A result is sent a few steps after its call has ended.
      await new Promise((next) => setImmediate(next));
      await last;
    },
    async close() {
      input.off('data', read);
      input.pause();
      stdio.onclose?.();
    },
    whenSent(id, sent, signal) {
      if (signal.aborted) return;
      waiting.set(id, sent);
      signal.addEventListener('abort', () => waiting.delete(id), { once: true });
    },
  };
  return stdio;
}

const NEWLINE = 0x0a;

/** Takes chunks, and gives whole lines. Of one that is too long nothing is kept. */
function lines(onLine: (line: string) => void, onLong: () => void): (chunk: Buffer) => void {
  let kept: Buffer[] = [];
  let bytes = 0;
  return (chunk) => {
    let rest = chunk;
    for (let end = rest.indexOf(NEWLINE); ; end = rest.indexOf(NEWLINE)) {
      const part = end === -1 ? rest : rest.subarray(0, end);
      bytes += part.byteLength;
      if (bytes <= MOST_BYTES) kept.push(part);
      else kept = [];
      if (end === -1) return;
      const line = bytes <= MOST_BYTES ? Buffer.concat(kept).toString('utf8') : null;
      [kept, bytes, rest] = [[], 0, rest.subarray(end + 1)];
      if (line === null) onLong();
      else onLine(line);
    }
  };
}
