import { Field, ID, ObjectType } from '@nestjs/graphql';

@ObjectType()
export class Cart {
  @Field(() => ID)
  id!: string;

  @Field()
  isPaid!: boolean;
}
