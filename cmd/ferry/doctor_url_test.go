package main

import "testing"

func TestDoctorWarnsOfAPasswordInClear(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for url, warned := range map[string]bool{"redis://:Canary7@db.example": true,
		"redis://:Canary7@db.example?insecure=true": false, "rediss://:Canary7@db.example": false} {
		d.env["FERRY_BROKER"] = url
		r := d.run("doctor")
		if warned {
			d.has(r.out, "password", "without TLS", "rediss://")
		} else {
			d.hasNot(r.out, "without TLS")
		}
		d.hasNot(r.out+r.err, "Canary7", "db.example")
	}
}
