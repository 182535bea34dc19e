// Package publisher turns messages into records and stores them: duplicates, bounds, one transaction for all where that
// is asked for.
package publisher
