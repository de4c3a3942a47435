/** A row at the end; drivers give large numbers as strings. */
export interface StockRow {
  readonly item: string;
  readonly count: number | string;
}

/** What a commit left: the version of its row, its token, and what it had read. */
export interface LedgerRow {
  readonly item: string;
  readonly version: number;
  readonly token: number | string;
  readonly base: number | string;
}

export declare function judge(
  stock: readonly StockRow[],
  ledger: readonly LedgerRow[],
  totals: Readonly<Record<string, number>>,
): { readonly commits: number; readonly late: number; readonly lost: number; readonly beside: number };
