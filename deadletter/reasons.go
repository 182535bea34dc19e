package deadletter

import "github.com/ferrymq/ferry/driver"

// Reasons that Ferry gives. Handlers give their own with worker.Dead.
const (
	ReasonMaxAttempts    = driver.ReasonMaxAttempts    // every attempt failed
	ReasonMaxDeliveries  = driver.ReasonMaxDeliveries  // processes died while they handled it
	ReasonFatal          = driver.ReasonFatal          // the handler said that trying again cannot help
	ReasonTimeout        = driver.ReasonTimeout        // the last attempt took too long
	ReasonPanic          = driver.ReasonPanic          // the last attempt panicked
	ReasonExpired        = driver.ReasonExpired        // its time to live was over, with TopicConfig.ExpiredDead
	ReasonRateLimited    = driver.ReasonRateLimited    // a guard: over its limit
	ReasonKeyBlocked     = driver.ReasonKeyBlocked     // a guard: its key is blocked
	ReasonBreakerOpen    = driver.ReasonBreakerOpen    // a guard: the downstream is left alone
	ReasonOverload       = driver.ReasonOverload       // a guard: too much at once
	ReasonQueueFull      = driver.ReasonQueueFull      // what it should go to was full
	ReasonInvalidMessage = driver.ReasonInvalidMessage // its body could not be decoded
	ReasonDownstream     = driver.ReasonDownstream     // what the handler called failed
	ReasonRejected       = driver.ReasonRejected       // refused by what the handler called
)
