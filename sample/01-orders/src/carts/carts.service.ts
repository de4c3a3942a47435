import { setTimeout as sleep } from 'node:timers/promises';
import { ConflictException, Injectable } from '@nestjs/common';
import { type Cart, Database } from '../database.js';

/** Duration of a payment, in milliseconds. */
const PAYMENT_TIME = 150;

/** Does not know about locks: the routes of the controller take them. */
@Injectable()
export class CartsService {
  constructor(private readonly database: Database) {}

  async find(cartId: string): Promise<Cart> {
    return (await this.database.carts.find(cartId)) ?? { items: [], checkedOut: false };
  }

  async add(cartId: string, sku: string, quantity: number): Promise<Cart> {
    const cart = await this.open(cartId);
    cart.items.push({ sku, quantity });
    await this.database.carts.save(cartId, cart);
    return cart;
  }

  async checkOut(cartId: string): Promise<Cart> {
    const cart = await this.open(cartId);
    await sleep(PAYMENT_TIME);
    cart.checkedOut = true;
    await this.database.carts.save(cartId, cart);
    return cart;
  }

  private async open(cartId: string): Promise<Cart> {
    const cart = await this.find(cartId);
    if (cart.checkedOut) throw new ConflictException(`Cart ${cartId} is checked out`);
    return cart;
  }
}
