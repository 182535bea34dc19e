package kv

import "time"

// ending is when a value expires, unless it was written again since.
type ending struct {
	at   time.Time
	name string
}

// endings is a heap, the first to end on top.
type endings []ending

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e endings) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)        { *e = append(*e, x.(ending)) }

func (e *endings) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = ending{}
	*e = (*e)[:last]
	return x
}
