//go:build !race

package disk

const slowdown = 1
