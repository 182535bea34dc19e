package guard

import "time"

// ring is the times of the messages in a window, oldest first. It grows as needed and never beyond the limit.
//
// By BenchmarkWindow a message takes no memory, where a slice that is cut in front and appended to takes an allocation
// if it is the only one of its window, and 22 bytes if there are a thousand.
type ring struct {
	times []time.Duration
	first int
	n     int
}

func (r *ring) at(i int) time.Duration { return r.times[r.place(i)] }

// place is where the time i is. It may be one behind the last.
func (r *ring) place(i int) int {
	if i += r.first; i >= len(r.times) {
		i -= len(r.times)
	}
	return i
}

// forget drops times up to and including the cut.
func (r *ring) forget(cut time.Duration) {
	for r.n > 0 && r.times[r.first] <= cut {
		if r.first++; r.first == len(r.times) {
			r.first = 0
		}
		r.n--
	}
}

// after counts the times behind the cut, and returns the index of the first.
func (r *ring) after(cut time.Duration) (count, index int) {
	lo, hi := 0, r.n
	for lo < hi {
		if mid := (lo + hi) / 2; r.at(mid) <= cut {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return r.n - lo, lo
}

func (r *ring) add(t time.Duration) {
	if r.n == len(r.times) {
		grown := make([]time.Duration, max(4, 2*r.n))
		for i := range r.n {
			grown[i] = r.at(i)
		}
		r.times, r.first = grown, 0
	}
	r.times[r.place(r.n)] = t
	r.n++
}

// remove takes out one time, if it is there. Those that are given back are nearly always the newest.
func (r *ring) remove(t time.Duration) bool {
	for i := r.n - 1; i >= 0; i-- {
		switch at := r.at(i); {
		case at < t:
			return false
		case at == t:
			for ; i+1 < r.n; i++ {
				r.times[r.place(i)] = r.at(i + 1)
			}
			r.n--
			return true
		}
	}
	return false
}
