package driver

import "context"

// Follower is what a driver can do that numbers the messages of a topic as they are published and finds them by that
// number. It is optional: a Log is followed by its ranges, and a driver that is neither cannot be followed.
type Follower interface {
	// Follow returns what was published to a topic after an earlier page, oldest first, as far as it is still there: what
	// every group has settled is gone, unless TopicConfig.Keep keeps it. Of more than q.Limit it returns the newest, so
	// that a call takes the same time however far behind the caller is. It changes nothing.
	Follow(ctx context.Context, q FollowQuery) (FollowPage, error)
}

// FollowQuery selects what Follow returns.
type FollowQuery struct {
	Topic string
	After []Ref // the Last of an earlier page; empty: the page has no entries, and tells where the topic ends
	Limit int   // Defaults to 100, at most 1000.
}

// FollowPage is one answer of Follow.
type FollowPage struct {
	// Entries are messages as the topic has them: Group is empty, and so is State unless they are delayed, held or
	// invalid.
	Entries []Entry
	Last    []Ref // the newest message of each shard or partition
	// Published is that of TopicStats. What it grew by between two pages and is not among the entries was skipped.
	Published uint64
}

// Resolve fills in the default of q, and says what is wrong with it.
func (q FollowQuery) Resolve() (FollowQuery, error) {
	if err := CheckName("topic", q.Topic); err != nil {
		return q, err
	}
	var err error
	q.Limit, err = limited("Limit", q.Limit, DefaultLimit, MaxLimit)
	return q, err
}

// Since returns where to go on in a partition whose newest message has a number. One that ends before the place of an
// earlier page is another: the topic was deleted and made again, and all of it is new.
func (q FollowQuery) Since(partition int32, newest uint64) uint64 {
	if len(q.After) == 0 {
		return newest
	}
	for _, r := range q.After {
		if r.Partition == partition && r.Pos <= newest {
			return r.Pos
		}
	}
	return 0
}

// FollowerOf returns the Follower of a driver, or of the one that it wraps; nil where there is none.
func FollowerOf(d Driver) Follower { return optional[Follower](d) }
