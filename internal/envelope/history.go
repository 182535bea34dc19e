package envelope

import "github.com/ferrymq/ferry/driver"

// Field numbers of Failure.
const (
	numFailureAt = iota + 1
	numFailureInstance
	numFailureAttempt
	numFailureDuration
	numFailureReason
	numFailureError
	numFailureStack
)

// numFailures is the one field of History.
const numFailures = 1

// AppendHistory appends the stored form of failures to dst. Histories joined byte by byte are one history, so that a
// backend can add a failure without reading the others. It has no version and checksum: it is part of a record.
func AppendHistory(dst []byte, failures ...driver.Failure) []byte {
	for i := range failures {
		at := len(dst)
		dst = nest(appendFailure(dst, &failures[i]), at, numFailures)
	}
	return dst
}

// DecodeHistory reads what AppendHistory wrote, and returns the newest driver.HistoryLimit failures, oldest first. It
// keeps nothing of data.
func DecodeHistory(data []byte) ([]driver.Failure, error) {
	var history []driver.Failure
	err := historyFields.each(data, func(v value) (err error) {
		history, err = addFailure(history, v.data)
		return err
	})
	if err != nil {
		return nil, err
	}
	return history, nil
}

func appendFailure(dst []byte, f *driver.Failure) []byte {
	dst = appendTime(dst, numFailureAt, f.At)
	dst = appendText(dst, numFailureInstance, f.Instance)
	dst = appendInt(dst, numFailureAttempt, int64(f.Attempt))
	dst = appendInt(dst, numFailureDuration, int64(f.Duration))
	dst = appendText(dst, numFailureReason, string(f.Reason))
	dst = appendText(dst, numFailureError, f.Error)
	return appendText(dst, numFailureStack, f.Stack)
}

// addFailure appends the failure in data, in place of the oldest where history is full.
func addFailure(history []driver.Failure, data []byte) ([]driver.Failure, error) {
	var f driver.Failure
	err := failureFields.each(data, func(v value) (err error) {
		switch v.field {
		case numFailureAt:
			f.At = v.time()
		case numFailureInstance:
			f.Instance = v.text()
		case numFailureAttempt:
			f.Attempt, err = v.number()
		case numFailureDuration:
			f.Duration = v.wait()
		case numFailureReason:
			f.Reason = driver.Reason(v.data)
		case numFailureError:
			f.Error = v.text()
		case numFailureStack:
			f.Stack = v.text()
		}
		return err
	})
	if len(history) >= driver.HistoryLimit {
		history = append(history[:0], history[1:]...)
	}
	return append(history, f), err
}
