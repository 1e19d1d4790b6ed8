import type { Worker } from 'node:worker_threads';

/** A decoder makes some 5 MB in this time. */
const EVERY_MS = 20;

/**
 * Looks at a thread's memory from outside while it works: its heap, and the buffers beside it, which V8 does not limit. Calls `onTooMuch` once when they
 * are larger than `maxMb`. Works while the thread runs code without a pause. Returns the end of the watch.
 */
export function watchMemory(worker: Worker, maxMb: number, onTooMuch: () => void): () => void {
  let isWatching = true;
  const look = async () => {
    const { used_heap_size: heap, external_memory: buffers } = await worker.getHeapStatistics();
    if (isWatching && heap + buffers > maxMb * 2 ** 20) onTooMuch();
  };
  let isLooking = false;
  const timer = setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    look()
      // The thread has ended meanwhile.
      .catch(() => undefined)
      .finally(() => {
        isLooking = false;
      });
  }, EVERY_MS);
  return () => {
    isWatching = false;
    clearInterval(timer);
  };
}
