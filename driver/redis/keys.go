package redis

import (
	"slices"
	"strconv"
	"strings"
)

// Keys of a topic shard, in the order in which scripts are given them (lua/head.lua).
const (
	keyTopic    = iota // hash: shards, groups, configuration, counters
	keyBodies          // hash: sequence number to envelope
	keyIDs             // hash: id to sequence number and time of publishing
	keyLive            // hash: sequence number to the letters of the groups that have not settled it
	keyGraves          // hash: sequence number to the letters of the groups in which it is dead
	keyDelayed         // zset: sequence numbers by when they are due
	keyHeld            // zset: sequence numbers of held messages
	keyExpires         // zset: sequence numbers by when they expire
	keyDedup           // hash: dedup id to the first message
	keyWindows         // zset: dedup ids by when they are forgotten
	keyMemoryA         // hash: producers' own ids of this minute or the last
	keyMemoryB         // hash: the other minute
	keySegments        // zset: which thousands of sequence numbers have messages
	keySizes           // hash: how many messages each segment has
	keyInvalid         // zset: sequence numbers of undecodable entries
	keyRaw             // hash: their bytes
	keyProblems        // hash: when that was found, and what is wrong with them, on lines; of before, only the latter
	keyPending         // hash: sequence number to item, of delayed and held messages
	keyRequests        // hash: slot of a process to the answer to its last request
	topicKeys
)

// Keys of a group.
const (
	keyGroup   = 0  // hash: order, pause, counters, how far each lane was served
	keyLane    = 1  // list for each of four lanes: items in order
	keyBack    = 5  // zset for each lane: items that returned to their old place
	keyChain   = 9  // hash: key to the state of its chain
	keyNext    = 10 // hash: sequence number to the item behind it in its key
	keyState   = 11 // hash: sequence number to attempts, lost leases, cause
	keyLease   = 12 // hash: token to what is held with it
	keyTimer   = 13 // zset: leases and waits by when they end
	keyGone    = 14 // set: items in lanes and chains that were deleted
	keyDead    = 15 // zset: dead letters in the order of dying
	keyRecord  = 16 // hash: sequence number to when, where and why it died
	keyHistory = 17 // hash: sequence number to failures
	keyEdited  = 18 // hash: sequence number to the content an operator gave it
	keyMembers = 19 // zset: members by until when they are known to live
	keyLosses  = 20 // hash: sequence number to the claim that has begun, and those that were lost
	groupKeys  = 21
)

// Fields that keep hashes from being lists that are searched; lua/group.lua writes them. No id contains a control
// character.
const (
	padding   = "-"
	paddingID = "\x01"
)

// storedKey is the name of a key behind its tag, and its type.
type storedKey struct{ name, kind string }

var topicKeyTable = [topicKeys]storedKey{{"topic", "hash"}, {"bodies", "hash"}, {"ids", "hash"}, {"live", "hash"},
	{"graves", "hash"}, {"delayed", "zset"}, {"held", "zset"}, {"expires", "zset"}, {"dedup", "hash"}, {"windows", "zset"},
	{"memory0", "hash"}, {"memory1", "hash"}, {"segments", "zset"}, {"sizes", "hash"}, {"invalid", "zset"},
	{"raw", "hash"}, {"problems", "hash"}, {"pending", "hash"}, {"requests", "hash"}}

var groupKeyTable = [groupKeys]storedKey{{"group", "hash"}, {"lane0", "list"}, {"lane1", "list"}, {"lane2", "list"},
	{"lane3", "list"}, {"back0", "zset"}, {"back1", "zset"}, {"back2", "zset"}, {"back3", "zset"}, {"chain", "hash"},
	{"next", "hash"}, {"state", "hash"}, {"lease", "hash"}, {"timer", "zset"}, {"gone", "set"}, {"dead", "zset"},
	{"record", "hash"}, {"history", "hash"}, {"edited", "hash"}, {"members", "zset"}, {"losses", "hash"}}

// typeOf is the type that a key of ours should have.
func typeOf(key string) string {
	name := key[strings.LastIndexByte(key, ':')+1:]
	for _, k := range slices.Concat(topicKeyTable[:], groupKeyTable[:]) {
		if k.name == name {
			return k.kind
		}
	}
	return ""
}

// tagOf is what all keys of a topic shard begin with: a hash tag, so that a cluster keeps them together.
func tagOf(prefix, topic string, shard int) string {
	return "{" + prefix + ":" + topic + ":" + strconv.Itoa(shard) + "}:"
}

// registryKey is a hash of all topics of a namespace and their numbers of shards, in a slot of its own.
func registryKey(prefix string) string { return "{" + prefix + "}:topics" }

func keysOfTopic(tag string) []string {
	keys := make([]string, topicKeys)
	for i, k := range topicKeyTable {
		keys[i] = tag + k.name
	}
	return keys
}

// keysOfGroup begin with "g:", so that no group's name can be taken for a key of the topic.
func keysOfGroup(tag, group string) []string {
	keys := make([]string, groupKeys)
	for i, k := range groupKeyTable {
		keys[i] = tag + "g:" + group + ":" + k.name
	}
	return keys
}
