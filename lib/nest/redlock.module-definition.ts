import { ConfigurableModuleBuilder } from '@nestjs/common';
import type { RedlockModuleExtras, RedlockModuleOptions } from './redlock-module-options.interface.js';

const extras: Required<Pick<RedlockModuleExtras, 'isGlobal'>> & { name: string | undefined } = {
  isGlobal: true,
  name: undefined,
};

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN, OPTIONS_TYPE, ASYNC_OPTIONS_TYPE } =
  new ConfigurableModuleBuilder<RedlockModuleOptions>({ moduleName: 'Redlock' })
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createRedlockOptions')
    .setExtras(extras, (definition, { isGlobal }) => ({ ...definition, global: isGlobal }))
    .build();
