import type ts from 'typescript';

/** A range of the source and its substitute. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly operator: string;
}

export declare function editsOf(source: ts.SourceFile, checker: ts.TypeChecker): readonly Edit[];
