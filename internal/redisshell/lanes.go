package redisshell

import "github.com/ferrymq/ferry/driver"

// stepScale divided by a weight is how far one claim moves a lane. Sums stay exact in scripts for ages.
const stepScale = 1 << 20

// Steps is how far one claim moves each lane, as scripts read it. An empty first one says that priorities are strict.
func Steps(o driver.SubscribeOptions) (steps [4]any) {
	if o.StrictPriority {
		return [4]any{"", 0, 0, 0}
	}
	for lane, weight := range o.Weights {
		steps[lane] = stepScale / weight
	}
	return steps
}

// Share is what one part of a topic has of a bound, rounded up.
func Share(n int64, parts int) int64 { return n/int64(parts) + min(n%int64(parts), 1) }
