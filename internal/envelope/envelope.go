// Package envelope is the stored form of messages and dead letters: protobuf wire format, described by ferry.proto and
// docs/envelope.md, and written and read by hand because every message passes through here.
//
// An envelope holds what the producer asked for (delay, schedule, TTL), never when something is due or expires: a
// backend reckons that on its own clock and keeps it in its own index. What is zero is left out. A driver that keeps
// the topic or the time of publishing beside the envelope, or sets the latter, does so in a shallow copy:
//
//	stored := *m
//	stored.Topic, stored.PublishedAt = "", now
//	data := envelope.Append(nil, &stored)
//
// Encoding is deterministic: equal messages give equal bytes. Decoding checks the version and an end-to-end checksum
// first, skips fields it does not know, and uses memory in proportion to its input at most. Every error is
// [driver.ErrInvalid]: the bytes then belong in the parse-error store of their topic, whole.
package envelope

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"

	"github.com/ferrymq/ferry/driver"
	"google.golang.org/protobuf/encoding/protowire"
)

// Version is the version of the stored form that this package writes, and the only one that it reads.
const Version = 1

// The checksum field: one byte of tag, four of CRC-32C, little endian.
const (
	crcTag  = numCRC<<3 | byte(protowire.Fixed32Type)
	crcSize = 1 + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendVersion(dst []byte) []byte { return appendUint(dst, numVersion, Version) }

// seal appends the checksum of everything from start on.
func seal(dst []byte, start int) []byte {
	sum := crc32.Checksum(dst[start:], castagnoli)
	return binary.LittleEndian.AppendUint32(append(dst, crcTag), sum)
}

// unseal checks version and checksum and returns the fields between them.
func unseal(data []byte) ([]byte, error) {
	num, typ, n := protowire.ConsumeTag(data)
	if n < 0 || num != numVersion || typ != protowire.VarintType {
		return nil, damaged("it does not begin with a version", nil)
	}
	version, m := protowire.ConsumeVarint(data[n:])
	if m < 0 {
		return nil, damaged("its version is cut off", nil)
	}
	if version != Version {
		return nil, unknownVersion(strconv.FormatUint(version, 10))
	}
	end := len(data) - crcSize
	if end < n+m || data[end] != crcTag {
		return nil, damaged("it does not end with a checksum", nil)
	}
	if err := checkSum(binary.LittleEndian.Uint32(data[end+1:]), crc32.Checksum(data[:end], castagnoli)); err != nil {
		return nil, err
	}
	return data[n+m : end], nil
}

func checkSum(stored, computed uint32) error {
	if stored == computed {
		return nil
	}
	return damaged(fmt.Sprintf("its checksum is %08x, but its content gives %08x", stored, computed), nil)
}

func unknownVersion(version string) error {
	return driver.NewError(driver.ErrInvalid,
		fmt.Sprintf("the envelope has version %s, this program reads version %d", version, Version),
		"upgrade this program to the one that wrote it, then move the message back from the invalid ones", nil)
}

func damaged(why string, cause error) error {
	return driver.NewError(driver.ErrInvalid, "the envelope cannot be read: "+why,
		"it was damaged, or not written by Ferry: look at its bytes among the invalid messages, then edit or delete it",
		cause)
}
