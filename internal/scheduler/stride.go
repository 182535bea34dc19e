package scheduler

// stride shares claims between lanes by weight: each claim moves its lane forward by the inverse of the weight, and
// the lane that is furthest behind is next.
type stride struct {
	pass [Lanes]uint64
	now  uint64
}

const strideScale = 1 << 32

// enter gives a lane that was empty no credit for that time.
func (s *stride) enter(lane uint8) { s.pass[lane] = max(s.pass[lane], s.now) }

// charge moves a lane forward by steps for each claim.
func (s *stride) charge(lane uint8, claims int, steps *[Lanes]uint64) {
	s.now = s.pass[lane]
	s.pass[lane] += uint64(claims) * steps[lane]
}
