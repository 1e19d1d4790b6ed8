/** The payer is certain that nothing was paid, so another attempt costs nothing twice. */
export class NotPaid extends Error {
  constructor(detail: string) {
    super(detail);
    this.name = 'NotPaid';
  }
}
