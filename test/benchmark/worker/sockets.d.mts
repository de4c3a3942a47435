export declare function trafficDuring<T extends object>(
  work: () => Promise<T>,
): Promise<T & { sent: number; received: number }>;
export declare function requestsDuring<T extends object>(work: () => Promise<T>): Promise<T & { requests: number }>;
