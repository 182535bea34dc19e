package envelope

import (
	"math"

	"github.com/ferrymq/ferry/driver"
)

// Field numbers of DeadLetter. The first and the last are those of Message.
const (
	numMessage = iota + 2
	numReason
	numError
	numFingerprint
	numStack
	numHistory
	numOrigin
	numAttempts
	numDeliveries
	numRecoverable
	numAction
	numRounds
	numDiedAt
)

// Field numbers of Origin.
const (
	numOriginTopic = iota + 1
	numOriginGroup
	numOriginPartition
	numOriginPos
	numOriginSub
	numOriginInstance
)

// AppendDeadLetter appends the stored form of dl to dst and returns it. Its message is a whole envelope inside.
func AppendDeadLetter(dst []byte, dl *driver.DeadLetter) []byte {
	start := len(dst)
	dst = appendVersion(dst)
	if dl.Message != nil {
		at := len(dst)
		dst = nest(Append(dst, dl.Message), at, numMessage)
	}
	dst = appendText(dst, numReason, string(dl.Reason))
	dst = appendText(dst, numError, dl.Error)
	dst = appendText(dst, numFingerprint, dl.Fingerprint)
	dst = appendText(dst, numStack, dl.Stack)
	for i := range dl.History {
		at := len(dst)
		dst = nest(appendFailure(dst, &dl.History[i]), at, numHistory)
	}
	if dl.Origin != (driver.Origin{}) {
		at := len(dst)
		dst = nest(appendOrigin(dst, &dl.Origin), at, numOrigin)
	}
	dst = appendInt(dst, numAttempts, int64(dl.Attempts))
	dst = appendInt(dst, numDeliveries, int64(dl.Deliveries))
	dst = appendBool(dst, numRecoverable, dl.Recoverable)
	dst = appendText(dst, numAction, string(dl.Action))
	dst = appendInt(dst, numRounds, int64(dl.Rounds))
	dst = appendTime(dst, numDiedAt, dl.DiedAt)
	return seal(dst, start)
}

func appendOrigin(dst []byte, o *driver.Origin) []byte {
	dst = appendText(dst, numOriginTopic, o.Topic)
	dst = appendText(dst, numOriginGroup, o.Group)
	dst = appendInt(dst, numOriginPartition, int64(o.Ref.Partition))
	dst = appendUint(dst, numOriginPos, o.Ref.Pos)
	dst = appendUint(dst, numOriginSub, o.Ref.Sub)
	return appendText(dst, numOriginInstance, o.Instance)
}

// DecodeDeadLetter reads what AppendDeadLetter wrote. The body of its message is part of data, as with Decode.
func DecodeDeadLetter(data []byte) (*driver.DeadLetter, error) {
	content, err := unseal(data)
	if err != nil {
		return nil, err
	}
	dl := new(driver.DeadLetter)
	err = deadLetterFields.each(content, func(v value) error { return setDeadField(dl, v) })
	if err != nil {
		return nil, err
	}
	return dl, nil
}

func setDeadField(dl *driver.DeadLetter, v value) (err error) {
	switch v.field {
	case numMessage:
		dl.Message, err = Decode(v.data)
	case numReason:
		dl.Reason = driver.Reason(v.data)
	case numError:
		dl.Error = v.text()
	case numFingerprint:
		dl.Fingerprint = v.text()
	case numStack:
		dl.Stack = v.text()
	case numHistory:
		dl.History, err = addFailure(dl.History, v.data)
	case numOrigin:
		err = setOrigin(&dl.Origin, v.data)
	case numAttempts:
		dl.Attempts, err = v.number()
	case numDeliveries:
		dl.Deliveries, err = v.number()
	case numRecoverable:
		dl.Recoverable = v.bool()
	case numAction:
		dl.Action = driver.Action(v.data)
	case numRounds:
		dl.Rounds, err = v.number()
	case numDiedAt:
		dl.DiedAt = v.time()
	}
	return err
}

func setOrigin(o *driver.Origin, data []byte) error {
	return originFields.each(data, func(v value) error {
		switch v.field {
		case numOriginTopic:
			o.Topic = v.text()
		case numOriginGroup:
			o.Group = v.text()
		case numOriginPartition:
			if n := v.int64(); n < math.MinInt32 || n > math.MaxInt32 {
				return damaged("the partition of the origin is out of range", nil)
			}
			o.Ref.Partition = int32(v.int64())
		case numOriginPos:
			o.Ref.Pos = v.num
		case numOriginSub:
			o.Ref.Sub = v.num
		case numOriginInstance:
			o.Instance = v.text()
		}
		return nil
	})
}
