/** The API of a third party. It refuses the sixth concurrent call of a customer with 429. */
export class Carrier {
  constructor(private readonly url: string) {}

  /** @throws if the carrier refuses the call, and with the reason of the signal */
  async label(order: string, signal: AbortSignal | undefined): Promise<string> {
    const response = await fetch(`${this.url}/labels/${order}`, { method: 'POST', signal: signal ?? null });
    if (!response.ok) throw new Error(`the carrier answered ${response.status}`);
    return response.text();
  }
}
