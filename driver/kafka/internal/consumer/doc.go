// Package consumer is this process in its groups: the partitions that it owns, what is claimed and settled there, what
// is committed, and the same for operators who look at a group, or change it, without joining.
package consumer
