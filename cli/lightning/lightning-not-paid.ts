/** Thrown when the payer is certain that nothing was paid. So another attempt cannot pay twice. */
export class NotPaid extends Error {
  constructor(detail: string) {
    super(detail);
    this.name = 'NotPaid';
  }
}
