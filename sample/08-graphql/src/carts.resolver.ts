import { Args, ID, Mutation, Query, Resolver } from '@nestjs/graphql';
import { WithLock } from 'nestjs-redlock';
import { Cart } from './cart.model.js';
import { Payments } from './payments.js';

@Resolver(() => Cart)
export class CartsResolver {
  private readonly paid = new Set<string>();

  constructor(private readonly payments: Payments) {}

  @Query(() => Cart)
  cart(@Args('id', { type: () => ID }) id: string): Cart {
    return { id, isPaid: this.paid.has(id) };
  }

  /** The key function receives the arguments of the method in their order. A second checkout is refused. */
  @Mutation(() => Cart)
  @WithLock((id: string) => `cart:${id}`, { ttl: '2s', wait: 0 })
  async checkOut(@Args('id', { type: () => ID }) id: string): Promise<Cart> {
    await this.payments.charge(id);
    this.paid.add(id);
    return this.cart(id);
  }
}
