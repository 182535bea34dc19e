package kv

import (
	"slices"
	"sort"
)

// names are in order, for pages. New ones are put in their places when somebody asks, and those that are gone leave
// then.
type names struct {
	sorted []string
	fresh  []string
}

// add notes a name that was not there. There tells which names still are.
func (n *names) add(name string, there map[string]*value) {
	n.fresh = append(n.fresh, name)
	if len(n.fresh) > 2*len(there)+remembered { // nobody asks
		n.arrange(there)
	}
}

func (n *names) arrange(there map[string]*value) {
	if len(n.fresh) == 0 {
		return
	}
	slices.Sort(n.fresh)
	merged := make([]string, 0, len(there))
	for len(n.sorted)+len(n.fresh) > 0 {
		from := &n.sorted
		if len(n.sorted) == 0 || len(n.fresh) > 0 && n.fresh[0] < n.sorted[0] {
			from = &n.fresh
		}
		name := (*from)[0]
		*from = (*from)[1:]
		if there[name] != nil && (len(merged) == 0 || merged[len(merged)-1] != name) {
			merged = append(merged, name)
		}
	}
	n.sorted, n.fresh = merged, nil
}

// from returns the names that begin with a prefix, or come later, behind one. Some may be gone.
func (n *names) from(prefix, behind string, there map[string]*value) []string {
	n.arrange(there)
	at := sort.Search(len(n.sorted), func(i int) bool { return n.sorted[i] >= prefix && n.sorted[i] > behind })
	return n.sorted[at:]
}
