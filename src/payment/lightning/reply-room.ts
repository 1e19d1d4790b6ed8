import { Unavailable } from '../../errors.ts';

/** The room for kept replies, so that offers cannot fill the disk. */
export interface ReplyRoom {
  /** Throws Unavailable, `reply_store_full`, when there is none left. */
  check(): void;
  add(bytes: number): void;
  /** Counted anew, after what may go is gone. */
  set(bytes: number): void;
}

/** An account in memory of what the store holds; between two counts it only grows. */
export function createReplyRoom(maxBytes: number): ReplyRoom {
  let used = 0;
  return {
    check: () => {
      if (used >= maxBytes) {
        throw new Unavailable('reply_store_full', 'No room to keep another reply; try again later.', 30);
      }
    },
    add: (bytes) => {
      used += bytes;
    },
    set: (bytes) => {
      used = bytes;
    },
  };
}
