import { createHmac, timingSafeEqual } from 'node:crypto';

/** Who has signed in: all instances with one password accept the same cookie. */
export class Session {
  private readonly token: string;

  constructor(private readonly password: string) {
    this.token = digest(password, 'session of an admin');
  }

  /** The cookie of those who know the password. A link from another site does not send it. */
  open(password: string): string | undefined {
    if (!isSame(password, this.password)) return undefined;
    return `admin=${this.token}; Path=/; HttpOnly; SameSite=Lax`;
  }

  has(cookies: string | undefined): boolean {
    const [, token = ''] = /(?:^|; )admin=([^;]*)/.exec(cookies ?? '') ?? [];
    return isSame(token, this.token);
  }
}

const digest = (key: string, text: string): string => createHmac('sha256', key).update(text).digest('base64url');

/** In the same time for each text. */
function isSame(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(digest('', one)), Buffer.from(digest('', other)));
}
