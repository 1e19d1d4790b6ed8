/** Waits for every part. Then rejects with the first failure in the order of the parts. */
export async function allTried(parts: readonly unknown[]): Promise<void> {
  const failed = (await Promise.allSettled(parts)).find((part) => part.status === 'rejected');
  if (failed) throw failed.reason;
}
