// Optional peers of `@nestjs/graphql` and `@nestjs/apollo`. Their types refer to these peers, but this sample does not
// need them. An application with `skipLibCheck: true` does not need this file either.
declare module 'ts-morph' {
  export type ClassDeclarationStructure = unknown;
  export type EnumDeclarationStructure = unknown;
  export type InterfaceDeclarationStructure = unknown;
  export type MethodDeclarationStructure = unknown;
  export type MethodSignatureStructure = unknown;
  export type OptionalKind<Structure> = Structure;
  export type ParameterDeclarationStructure = unknown;
  export type PropertyDeclarationStructure = unknown;
  export type PropertySignatureStructure = unknown;
  export type SourceFile = unknown;
  export type TypeAliasDeclarationStructure = unknown;
}

declare module '@apollo/gateway' {
  export type GatewayConfig = object;
}
