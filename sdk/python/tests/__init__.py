"""Tests against a real server. `go test ./sdk` builds it, starts it and runs them; FERRY_BIN, FERRY_BROKER and FERRY_TOKEN say where it is."""
