// Package record is how messages, their state and dead letters are written as records.
package record
