/** Counts the bytes of replies that wait to be written, so that a sum over the kept replies includes them. */
export interface WaitingBytes {
  read(): number;
  /** Counts `bytes` until the write has ended, also when it rejects. */
  during<T>(bytes: number, write: () => Promise<T>): Promise<T>;
}

/** A counter for all stores of one database whose writes keep replies. */
export function createWaitingBytes(): WaitingBytes {
  let waiting = 0;
  return {
    read: () => waiting,
    during: async (bytes, write) => {
      waiting += bytes;
      try {
        return await write();
      } finally {
        waiting -= bytes;
      }
    },
  };
}
