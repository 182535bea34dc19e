// Package offsets is what is done in a partition, and how it is written beside a committed offset: no I/O, no clock.
package offsets
