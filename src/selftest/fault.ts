/** Ends a run early. `reason` is a short code of ours. It is stored and published, so it never quotes a third party. */
export class SelfTestFault extends Error {
  readonly reason: string;
  constructor(reason: string) {
    super(reason);
    this.name = 'SelfTestFault';
    this.reason = reason;
  }
}
