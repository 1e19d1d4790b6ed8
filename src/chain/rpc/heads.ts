import type { Log } from '../../lib/common.ts';

// New heads over a websocket. A head is only a hint, so a dead or lying socket costs nothing but time.

interface HeadWatchOptions {
  /** ws:// or wss:// endpoints; the first that works is used. May be empty. */
  readonly urls: readonly string[];
  readonly log: Pick<Log, 'warn'>;
  readonly onHead: (number: number) => void;
  readonly idleTimeoutMs?: number;
}

/** Back-off of a websocket that fails, doubled with each failure in a row. */
const BACK_OFF_MS = 1000;
const MAX_BACK_OFF_MS = 60_000;
/** A socket that reports no head for so long is dead: in this time Arc makes sixty blocks. In milliseconds. */
const IDLE_TIMEOUT_MS = 30_000;

/** Subscribes to `newHeads` at one endpoint at a time and calls `onHead` for each. */
export function watchHeads({ urls, log, onHead, idleTimeoutMs = IDLE_TIMEOUT_MS }: HeadWatchOptions): {
  close(): void;
} {
  let closed = false;
  let failures = 0;
  let socket: WebSocket | undefined;
  // Either the next attempt, or the idle time-out of the open socket.
  let timer: NodeJS.Timeout | undefined;

  function connect(): void {
    const url = urls[failures % urls.length];
    if (closed || url === undefined) return;
    const opened = new WebSocket(url);
    socket = opened;
    const { host } = new URL(url);
    const giveUp = () => {
      if (socket !== opened) return;
      socket = undefined;
      // The close handshake may take long or never end, so it is not awaited.
      opened.close();
      retry(host);
    };
    restartIdleTimer(giveUp);
    opened.addEventListener('open', () => {
      opened.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: ['newHeads'] }));
    });
    opened.addEventListener('message', ({ data }) => {
      const number = numberOf(String(data));
      if (number === null) return;
      failures = 0;
      if (socket === opened) restartIdleTimer(giveUp);
      onHead(number);
    });
    opened.addEventListener('close', giveUp);
  }

  function restartIdleTimer(giveUp: () => void): void {
    clearTimeout(timer);
    timer = setTimeout(giveUp, idleTimeoutMs);
    timer.unref();
  }

  function retry(host: string): void {
    if (closed) return;
    failures += 1;
    if (failures === 1) log.warn({ host }, 'the websocket for new heads failed; the collector goes on polling');
    clearTimeout(timer);
    timer = setTimeout(connect, Math.min(BACK_OFF_MS * 2 ** (failures - 1), MAX_BACK_OFF_MS));
    timer.unref();
  }

  connect();
  return {
    close() {
      closed = true;
      clearTimeout(timer);
      socket?.close();
    },
  };
}

function numberOf(text: string): number | null {
  const found = /"number"\s*:\s*"0x([0-9a-fA-F]{1,12})"/.exec(text);
  return text.includes('eth_subscription') && found !== null ? Number.parseInt(found[1] ?? '', 16) : null;
}

/** Lets callers wait for heads. The first opens the socket; it stays open, for opening takes longer than a block. */
export function createHeads(urls: readonly string[], log: Pick<Log, 'warn'>) {
  const listeners = new Set<() => void>();
  let watch: { close(): void } | null = null;
  return {
    /** Calls `onHead` for every head, until the returned function is called; without an endpoint never. */
    listen(onHead: () => void): () => void {
      listeners.add(onHead);
      if (urls.length > 0) {
        const notifyAll = () => {
          for (const listener of listeners) listener();
        };
        watch ??= watchHeads({ urls, log, onHead: notifyAll });
      }
      return () => void listeners.delete(onHead);
    },
    close(): void {
      watch?.close();
    },
  };
}
