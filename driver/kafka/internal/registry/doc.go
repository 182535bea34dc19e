// Package registry is which topics and groups there are, how they are configured, and where positions in their history
// are.
package registry
