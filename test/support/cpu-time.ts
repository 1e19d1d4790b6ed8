/** A pause of the machine, or the engine's own work, may fall into a reading. A cost of the work itself is in each one. */
const READINGS = 5;

/** The processor time in ms that this thread takes for the work: of several readings the first below `boundMs`, or the least. */
export function cpuTimeMs(boundMs: number, work: () => void): number {
  let least = Number.POSITIVE_INFINITY;
  for (let reading = 0; reading < READINGS && least >= boundMs; reading += 1) least = Math.min(least, readingMs(work));
  return least;
}

/** Unlike the clock, the thread's own time does not grow while other programs and threads use the processor. */
function readingMs(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
