export declare class DelayingProxy {
  static start(urls: readonly string[]): Promise<DelayingProxy>;
  readonly urls: readonly string[];
  delayBy(roundTrip: number): Promise<void>;
  end(): Promise<void>;
}
