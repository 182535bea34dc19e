package wecomtest

import "time"

// Age lets time pass for what customers said: the vendor gives messages of the last three days only to who has no
// cursor, and takes replies for 48 hours.
func (s *Server) Age(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.accounts {
		for i := range a.times {
			a.times[i] = a.times[i].Add(-d)
		}
	}
	for _, one := range s.sessions {
		one.lastSaid = one.lastSaid.Add(-d)
	}
}
