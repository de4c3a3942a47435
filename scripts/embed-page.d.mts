/** The text of `lib/dashboard/page.generated.ts`, made from the files of `lib/dashboard/page`. */
export declare function embeddedPage(): string;
