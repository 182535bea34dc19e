// Package drivertest is the conformance suite of the driver seam.
//
// It judges a driver by the comments of package driver alone. A driver's own test is about fifteen lines:
//
//	func TestDriver(t *testing.T) {
//		drivertest.Run(t, drivertest.Harness{
//			Open:     func(t testing.TB) driver.Driver { return newDriver(t) },
//			Want:     driver.Capabilities{Driver: "memory", ...},
//			PlantRaw: plant, // rubbish into a topic, behind the driver's back
//			Virtual:  true,
//		})
//	}
//
// Four parts: named cases, one for each semantic (cases.go lists them); seeded random histories against a small
// model (history.go, model.go); a concurrent stress run (stress.go); benchmarks (bench.go). Defects (defects.go) are
// broken drivers that prove that the suite can fail.
package drivertest
