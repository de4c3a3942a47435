export declare class DelayLine {
  delay: number;
  push(deliver: () => void): void;
}
