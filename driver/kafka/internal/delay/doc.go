// Package delay is what is not due yet, or held: tiers in one topic, who owns and fires them, and looking at them.
package delay
