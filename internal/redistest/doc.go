// Package redistest starts real Redis servers for tests: child processes on free loopback ports, in directories of
// their own.
//
//	s := redistest.Shared(t)                                    // one server for the whole test process: most cases
//	s := redistest.Single(t, redistest.Options{AOF: "always"})  // one of its own, to be killed and restarted
//	s := redistest.Sentinel(t, redistest.Options{})             // a primary, a replica and three sentinels
//	s := redistest.Cluster(t, redistest.Options{})              // three primaries with a replica each
//
// A constructor returns when the servers answer, and fails the test with the end of the server's log when they do not.
// A server that is not installed is a failure too, never a skip: `make setup` installs all of [Versions].
//
// Faults are methods of [Server]: Kill is SIGKILL, Restart starts again on the same port with the same files, Stop and
// Continue freeze and thaw it. They may be called from any goroutine, so they return errors and never fail the test
// themselves. The sets have the same servers in fields, and methods that find out who is primary now.
//
// Programs, such as a benchmark, call [StartSingle], [StartSentinel] or [StartCluster] with a directory of theirs, and
// Close what they return.
//
// Nothing is left behind. The servers of a test end with it. The shared one ends with the test process, for which its
// TestMain must say
//
//	goleak.VerifyTestMain(redistest.Main(m))
//
// and on Linux the kernel ends all of them when the test process dies in any other way. Ports lie below the range from
// which outgoing connections take theirs and stay reserved while the server is down, so that a restart finds its port
// free.
package redistest
