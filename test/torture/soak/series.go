// Package soak watches figures of a long run and says whether one of them grows.
package soak

import (
	"math"
	"time"
)

// Series is one figure over time.
type Series struct {
	Name string
	Unit string
	// PerHour is the growth that is forgiven, and Noise what a figure may grow in all before growth counts.
	PerHour, Noise float64
	Points         []Point
}

// Point is one sample.
type Point struct {
	At    time.Duration // since the start
	Value float64
}

// Trend is the straight line through the points after the warm-up.
type Trend struct {
	Start   float64 // at the end of the warm-up
	PerHour float64
	Error   float64 // standard error of PerHour
	Window  time.Duration
}

// Trend fits the points after warmUp. It needs three.
func (s *Series) Trend(warmUp time.Duration) Trend {
	var xs, ys []float64
	for _, p := range s.Points {
		if p.At >= warmUp {
			xs, ys = append(xs, (p.At-warmUp).Hours()), append(ys, p.Value)
		}
	}
	n := float64(len(xs))
	if n < 3 {
		return Trend{}
	}
	meanX, meanY := mean(xs), mean(ys)
	var sxx, sxy float64
	for i := range xs {
		sxx += (xs[i] - meanX) * (xs[i] - meanX)
		sxy += (xs[i] - meanX) * (ys[i] - meanY)
	}
	slope := sxy / sxx
	var rest float64
	for i := range xs {
		d := ys[i] - (meanY + slope*(xs[i]-meanX))
		rest += d * d
	}
	return Trend{
		Start: meanY - slope*meanX, PerHour: slope, Error: math.Sqrt(rest / (n - 2) / sxx),
		Window: time.Duration(xs[len(xs)-1] * float64(time.Hour)),
	}
}

func mean(xs []float64) float64 {
	var sum float64
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// Grows says that the growth is certain (three standard errors), faster than forgiven, and more than noise.
func (s *Series) Grows(t Trend) bool {
	return t.PerHour-3*t.Error > s.PerHour && t.PerHour*t.Window.Hours() > s.Noise
}

// WarmUp is the part of a run that does not count: a quarter, but at least the minute for which ids are remembered, and
// never more than six tenths.
func WarmUp(run time.Duration) time.Duration {
	return min(max(run/4, 75*time.Second), run*6/10)
}
