//go:build race

package disk

// slowdown divides the length of what is only long: under the race detector Pebble is an order of magnitude slower.
const slowdown = 10
