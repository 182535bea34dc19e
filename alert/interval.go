package alert

import "math"

// interval is the values that a figure can have, or that a condition leaves of them.
type interval struct {
	low, high         float64
	lowOpen, highOpen bool // the bound itself is not among them
}

// values are those that a figure can have: from 0 to 1 of a share, from 0 on of a count.
func (f figure) values() interval {
	v := interval{high: math.Inf(1)}
	if f.share {
		v.high = 1
	}
	if f.signed {
		v.low = math.Inf(-1)
	}
	return v
}

// meet leaves the values that compare with a number.
func (v interval) meet(operator string, n float64) interval {
	if operator == "==" {
		return v.meet(">=", n).meet("<=", n)
	}
	open := operator == ">" || operator == "<"
	switch operator {
	case ">", ">=":
		if n > v.low || n == v.low && open {
			v.low, v.lowOpen = n, open
		}
	case "<", "<=":
		if n < v.high || n == v.high && open {
			v.high, v.highOpen = n, open
		}
	}
	return v
}

// empty reports whether there is no such value.
func (v interval) empty() bool {
	return v.low > v.high || v.low == v.high && (v.lowOpen || v.highOpen)
}
