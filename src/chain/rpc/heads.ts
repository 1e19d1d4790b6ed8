import type { ChainLog } from './log.ts';

/** Back-off of a websocket that fails, doubled with each failure in a row. */
const BACK_OFF_MS = 1000;
const MAX_BACK_OFF_MS = 60_000;
/** Sixty blocks of Arc: a socket that tells of none in that time is dead, though nobody has closed it. */
const SILENCE_MS = 30_000;

interface HeadWatchOptions {
  /** ws:// or wss:// endpoints; the first that works is used, none is needed. */
  readonly urls: readonly string[];
  readonly log: ChainLog;
  readonly onHead: (number: number) => void;
  /** How long a socket may be silent before the next endpoint is tried. */
  readonly silenceMs?: number;
}

/**
 * Subscribes to `newHeads` at one endpoint at a time and tells of each. What it says is not believed, only taken as a hint of what to ask for:
 * the poll reads and checks the block by itself, so that a dead or lying socket costs nothing but time.
 */
export function watchHeads({ urls, log, onHead, silenceMs = SILENCE_MS }: HeadWatchOptions): { close(): void } {
  let closed = false;
  let failures = 0;
  let socket: WebSocket | undefined;
  // The next attempt, or the end of patience with the present one.
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
      // Its own end may take a while, or never come: nobody waits for it.
      opened.close();
      retry(host);
    };
    patience(giveUp);
    opened.addEventListener('open', () => {
      opened.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: ['newHeads'] }));
    });
    opened.addEventListener('message', ({ data }) => {
      const number = numberOf(String(data));
      if (number === null) return;
      failures = 0;
      if (socket === opened) patience(giveUp);
      onHead(number);
    });
    opened.addEventListener('close', giveUp);
  }

  function patience(giveUp: () => void): void {
    clearTimeout(timer);
    timer = setTimeout(giveUp, silenceMs);
    timer.unref();
  }

  function retry(host: string): void {
    if (closed) return;
    failures += 1;
    if (failures === 1) log.warn({ host }, 'the websocket for new heads is gone; polling goes on');
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

/** The number of the block that a notification tells of; null for any other message. */
function numberOf(text: string): number | null {
  const found = /"number"\s*:\s*"0x([0-9a-fA-F]{1,12})"/.exec(text);
  return text.includes('eth_subscription') && found !== null ? Number.parseInt(found[1] ?? '', 16) : null;
}

/** Told heads for whoever listens; the socket is opened for the first and stays open, because opening takes longer than a block. */
export function createHeads(urls: readonly string[], log: ChainLog) {
  const listeners = new Set<() => void>();
  let watch: { close(): void } | null = null;
  return {
    /** Calls `tell` at every head that is told of; returns how to stop. Without an endpoint nothing is ever told. */
    listen(tell: () => void): () => void {
      listeners.add(tell);
      if (urls.length > 0) {
        const onHead = () => {
          for (const listener of listeners) listener();
        };
        watch ??= watchHeads({ urls, log, onHead });
      }
      return () => void listeners.delete(tell);
    },
    close(): void {
      watch?.close();
    },
  };
}
