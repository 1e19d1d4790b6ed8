import { Unavailable } from '../../errors.ts';

/** The room for kept replies, so that offers cannot fill the disk. */
export interface ReplyRoom {
  /** Throws Unavailable, `reply_store_full`, when there is none left. */
  check(): void;
  add(bytes: number): void;
  /** Counted anew, after what may go is gone. */
  set(bytes: number): void;
}

/**
 * An account in memory of what the store holds; between two counts it only grows. Where several processes keep replies in one store,
 * each uses its part of the room that the last count left.
 */
export function createReplyRoom(maxBytes: number, sharedBy = 1): ReplyRoom {
  let used = 0;
  let most = maxBytes / sharedBy;
  return {
    check: () => {
      if (used >= most) {
        throw new Unavailable('reply_store_full', 'No room to keep another reply; try again later.', 30);
      }
    },
    add: (bytes) => {
      used += bytes;
    },
    set: (bytes) => {
      used = bytes;
      most = bytes + Math.max(0, maxBytes - bytes) / sharedBy;
    },
  };
}
