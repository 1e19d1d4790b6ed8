import type { Log } from '../../lib/common.ts';

// New heads over a websocket. Each is only a hint: a dead or lying socket costs nothing but time.

const BACK_OFF_MS = 1000;
const MAX_BACK_OFF_MS = 60_000;
/** A socket without a head for so many milliseconds is dead: in this time Arc makes sixty blocks. */
const IDLE_TIMEOUT_MS = 30_000;

/** Subscribes to `newHeads` at the first endpoint (ws:// or wss://) that works. */
export function watchHeads(log: Pick<Log, 'warn'>, urls: readonly string[], onHead: (number: number) => void) {
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
      // Not awaited: the close handshake may never end.
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
    timer = setTimeout(giveUp, IDLE_TIMEOUT_MS);
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
    close(): void {
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

/** The first listener opens the socket. It stays open, because opening takes longer than a block. */
export function createHeads(urls: readonly string[], log: Pick<Log, 'warn'>) {
  const listeners = new Set<() => void>();
  let watch: ReturnType<typeof watchHeads> | null = null;
  return {
    /** Returns what ends it. */
    listen(onHead: () => void): () => void {
      listeners.add(onHead);
      if (urls.length > 0) {
        const notifyAll = () => {
          for (const listener of listeners) listener();
        };
        watch ??= watchHeads(log, urls, notifyAll);
      }
      return () => void listeners.delete(onHead);
    },
    close(): void {
      watch?.close();
    },
  };
}
