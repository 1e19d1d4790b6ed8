/** The processor time that this process has used, in ms. Unlike the clock, it does not grow while other programs use the processor. */
export function cpuTimeMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
