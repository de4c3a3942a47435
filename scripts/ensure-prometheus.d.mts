export interface PrometheusPrograms {
  /** Path of the server. */
  readonly prometheus: string;
  /** Path of its tool for rules and configurations. */
  readonly promtool: string;
}

/** The programs of Prometheus on this machine; `undefined` unless PATH contains both. */
export declare function findPrometheus(): PrometheusPrograms | undefined;
