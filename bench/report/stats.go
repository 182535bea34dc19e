package report

import "slices"

// Median returns the middle of values, or the mean of the two in the middle. No values: 0.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	v := slices.Sorted(slices.Values(values))
	mid := len(v) / 2
	if len(v)%2 == 1 {
		return v[mid]
	}
	return (v[mid-1] + v[mid]) / 2
}

// Spread returns the distance between the least and the greatest value, as a share of the median.
func Spread(values []float64) float64 {
	m := Median(values)
	if m == 0 {
		return 0
	}
	if m < 0 {
		m = -m
	}
	return (slices.Max(values) - slices.Min(values)) / m
}
