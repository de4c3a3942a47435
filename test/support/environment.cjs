// The environment of all suites. Nothing is open in a worker that ends; Node takes 700 ms all the same to give back the
// 500 MB that it has loaded, and jest calls it a leak after 500.
const process = require('node:process');
const { TestEnvironment } = require('jest-environment-node');

if (process.send) process.once('exit', () => process.reallyExit(process.exitCode));

module.exports = TestEnvironment;
