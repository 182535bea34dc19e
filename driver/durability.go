package driver

import "fmt"

// Durability is what an acknowledged publish survives. The zero value means the backend's own level.
type Durability uint16

// Durability levels, from the least to the most. See also Replicated.
const (
	// InMemory survives nothing but a crash of the handler.
	InMemory Durability = 1
	// Written survives kill -9 of the process that holds the data.
	Written Durability = 2
	// Synced survives a power loss.
	Synced Durability = 3

	replicated Durability = 16
)

const maxReplicas = 1000

// Replicated survives the loss of the primary: n more copies acknowledged the write. n is at least 1.
func Replicated(n int) Durability {
	if n < 1 || n > maxReplicas {
		return replicated // no driver gives it
	}
	return replicated + Durability(n)
}

// Replicas returns n of Replicated(n), and 0 for other levels.
func (d Durability) Replicas() int {
	if d > replicated {
		return int(d - replicated)
	}
	return 0
}

// String returns "memory", "written", "synced" or "replicated(n)".
func (d Durability) String() string {
	switch {
	case d == 0:
		return "default"
	case d == InMemory:
		return "memory"
	case d == Written:
		return "written"
	case d == Synced:
		return "synced"
	case d > replicated:
		return fmt.Sprintf("replicated(%d)", d.Replicas())
	}
	return "invalid"
}
