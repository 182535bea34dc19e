package drivertest

import (
	"fmt"
	"math"

	"github.com/ferrymq/ferry/driver"
)

var lanes = []driver.Priority{driver.Low, driver.Normal, driver.High, driver.Urgent}

func lanesAreFIFO(t *T) {
	s := t.consumer()
	want := map[driver.Priority][]string{}
	for i := range 80 {
		p, body := lanes[i*7%4], fmt.Sprint(i)
		t.publish(t.msg(body, prio(p)))
		want[p] = append(want[p], body)
	}
	got := map[driver.Priority][]string{}
	for _, d := range s.take(80) {
		got[d.Priority] = append(got[d.Priority], string(d.Body))
	}
	t.equal(got, want, "order inside the lanes")
}

func strictPriority(t *T) {
	s := t.consumerWith(driver.SubscribeOptions{StrictPriority: true})
	t.pause("", true)
	for i := range 12 {
		t.publish(t.msg(fmt.Sprint(i), prio(lanes[i%4])))
	}
	t.fetched()
	t.pause("", false)
	t.equal(bodies(s.gather(12)), []string{"3", "7", "11", "2", "6", "10", "1", "5", "9", "0", "4", "8"}, "order")
}

// weightsHold claims from four lanes that are never empty, and compares each lane's share with its weight.
func weightsHold(t *T) {
	claims := 10_000
	if t.Steps < 10_000 {
		claims = 1_000
	}
	for _, weights := range [][4]int{{}, {1, 1, 2, 4}} {
		s := t.consumerWith(driver.SubscribeOptions{Weights: weights})
		t.shares(s, weights, claims)
		s.leave()
		_, err := t.Purge(t.ctx(), topic, "")
		t.ok(err, "Purge")
	}
}

func (t *T) shares(s *sub, weights [4]int, claims int) {
	t.Helper()
	if weights == [4]int{} {
		weights = driver.DefaultWeights
	}
	total := weights[0] + weights[1] + weights[2] + weights[3]
	t.pause("", true)
	for lane, w := range weights {
		enough := int(float64(claims*w/total)*1.1) + 50
		t.publish(t.msgs(make([]string, enough), prio(driver.Priority(lane-1)))...)
	}
	t.fetched()
	t.pause("", false)
	var got [4]int
	for n := 0; n < claims; n += 50 {
		ds := s.take(50)
		for _, d := range ds {
			got[d.Priority.Lane()]++
		}
		s.ack(ds...)
	}
	for lane, w := range weights {
		want := float64(claims) * float64(w) / float64(total)
		if off := math.Abs(float64(got[lane]) - want); off > 0.05*want+0.001*float64(claims) {
			t.Errorf("weights %v: lane %d got %d of %d claims, want %.0f", weights, lane, got[lane], claims, want)
		}
	}
}

func lowNeverStarves(t *T) {
	s := t.consumer()
	t.publish(t.msg("low", prio(driver.Low)))
	t.publish(t.msgs(make([]string, 300), prio(driver.Urgent))...)
	for i := range 300 {
		d := s.one()
		s.ack(d)
		if d.Priority == driver.Low {
			return
		}
		if i > 2*85 {
			t.Fatalf("a low message was not claimed among %d claims, although its weight is 1 of 85", i)
		}
	}
}

// idleLanesSaveNoShare: a lane that was empty for long does not make up for it later.
func idleLanesSaveNoShare(t *T) {
	s := t.consumer()
	t.publish(t.msgs(make([]string, 500), prio(driver.Urgent))...)
	s.ack(s.take(500)...)
	t.publish(t.msgs(make([]string, 300), prio(driver.Urgent))...)
	t.publish(t.msgs(make([]string, 100), prio(driver.Low))...)
	low := 0
	for range 17 {
		d := s.take(10)
		for _, x := range d {
			if x.Priority == driver.Low {
				low++
			}
		}
		s.ack(d...)
	}
	if low > 2*170/65+2 { // its weight is 1, and that of the other lane 64
		t.Errorf("a lane that was empty before got %d of 170 claims, although its share is 1 of 65", low)
	}
}

// emptyLanesTakeNoShare: a lane alone gets every claim.
func emptyLanesTakeNoShare(t *T) {
	s := t.consumer()
	t.publish(t.msgs(numbered("a", 50), prio(driver.Low))...)
	s.expect(numbered("a", 50)...)
}

func retryKeepsPriority(t *T) {
	s := t.consumerWith(driver.SubscribeOptions{StrictPriority: true})
	t.publish(t.msg("urgent", prio(driver.Urgent)))
	d := s.one()
	t.put("normal")
	s.retry(d, 0)
	d = s.one()
	t.equal(string(d.Body), "urgent", "delivery after the retry")
	t.equal(d.Priority, driver.Urgent, "priority")
}
