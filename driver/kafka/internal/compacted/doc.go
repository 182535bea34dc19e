// Package compacted follows compacted topics into memory, as tables or only as where their rows are, and lets one of
// many change a row at a time.
package compacted
