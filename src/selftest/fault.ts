/** What ended a run before its time. `reason` is a short code that is stored and published, so it never holds what others wrote. */
export class SelfTestFault extends Error {
  readonly reason: string;
  constructor(reason: string) {
    super(reason);
    this.name = 'SelfTestFault';
    this.reason = reason;
  }
}
