// Package pgtest starts a real PostgreSQL server for tests: a child process in a directory of its own, reached through
// a socket in it, so that it needs no port and nobody else finds it.
//
//	url := pgtest.Database(t) // an empty database on the one server of the test process
//
// The server runs as an unprivileged user, since it refuses to run as root. One that is not installed is a failure,
// never a skip: `make setup` installs it. It ends with the test process, for which its TestMain must say
//
//	goleak.VerifyTestMain(pgtest.Main(m))
//
// and on Linux the kernel ends it when the test process dies in any other way.
package pgtest
