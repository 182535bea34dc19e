package redisconn

import (
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Findings judges what was found out about a server.
func (s *Server) Findings() []driver.Finding {
	return []driver.Finding{s.versionFinding(), s.evictionFinding(), s.survivalFinding(), s.replicaFinding(),
		s.clockFinding(), s.clusterFinding()}
}

func finding(severity driver.Severity, subject, text, hint string) driver.Finding {
	return driver.Finding{Severity: severity, Subject: subject, Text: text, Hint: hint}
}

func (s *Server) versionFinding() driver.Finding {
	if s.version == "unknown" {
		return finding(driver.SeverityUnknown, "version", "the version of the server is hidden", "allow the user INFO")
	}
	name := "Redis"
	if s.valkey {
		name = "Valkey"
	}
	return finding(driver.SeverityOK, "version", name+" "+s.version, "")
}

func (s *Server) evictionFinding() driver.Finding {
	switch s.policy {
	case "":
		return finding(driver.SeverityUnknown, "eviction", "maxmemory-policy is hidden",
			"allow the user INFO; it must be noeviction")
	case "noeviction":
		return finding(driver.SeverityOK, "eviction", "maxmemory-policy is noeviction", "")
	}
	if s.maxMemory == "0" {
		return finding(driver.SeverityWarning, "eviction",
			fmt.Sprintf("maxmemory-policy is %s, harmless only while maxmemory is not set", s.policy),
			"set maxmemory-policy noeviction")
	}
	return finding(driver.SeverityError, "eviction",
		fmt.Sprintf("maxmemory-policy is %s: the server will delete messages when it is full", s.policy),
		"set maxmemory-policy noeviction")
}

func (s *Server) survivalFinding() driver.Finding {
	switch {
	case s.aof && s.fsync == "always":
		return finding(driver.SeverityOK, "persistence",
			"an acknowledged publish survives a power cut: appendfsync is always", "")
	case s.aof && s.fsync == "?":
		return finding(driver.SeverityUnknown, "persistence", "the append-only file is on, appendfsync is hidden",
			"allow the user CONFIG GET to see what a power cut loses")
	case s.aof && s.fsync == "everysec":
		return finding(driver.SeverityOK, "persistence",
			"an acknowledged publish survives a crash of the server, but for the milliseconds in which an fsync runs; a power "+
				"cut loses up to 2 s", "")
	case s.aof:
		return finding(driver.SeverityWarning, "persistence",
			fmt.Sprintf("appendfsync is %s: a power cut loses what the system had not written", s.fsync),
			"set appendfsync everysec or always")
	case s.saves != "" && s.saves != "?":
		return finding(driver.SeverityWarning, "persistence",
			"only snapshots are made: a crash of the server loses everything since the last one", "set appendonly yes")
	}
	return finding(driver.SeverityWarning, "persistence",
		"nothing is written to disk: a crash of the server loses every message", "set appendonly yes")
}

func (s *Server) replicaFinding() driver.Finding {
	if s.role == "" {
		return finding(driver.SeverityUnknown, "replicas", "the role of the server is hidden", "allow the user INFO")
	}
	if s.replicas == 0 {
		return finding(driver.SeverityOK, "replicas", "there are none, and none is asked for", "")
	}
	return finding(driver.SeverityOK, "replicas",
		fmt.Sprintf("%d; a fail-over may lose what was published below level replicated(1)", s.replicas), "")
}

func (s *Server) clockFinding() driver.Finding {
	if s.skew.Abs() > time.Second {
		return finding(driver.SeverityWarning, "clock", fmt.Sprintf("the server's clock is %v away from ours", s.skew),
			"synchronise the clocks: schedules follow the server's")
	}
	return finding(driver.SeverityOK, "clock", fmt.Sprintf("the server's clock is %v away from ours", s.skew), "")
}

func (s *Server) clusterFinding() driver.Finding {
	switch {
	case !s.isCluster:
		return finding(driver.SeverityOK, "cluster", "none", "")
	case s.cluster == "":
		return finding(driver.SeverityUnknown, "cluster", "the state of the cluster is hidden", "allow the user CLUSTER INFO")
	case s.cluster != "ok":
		return finding(driver.SeverityError, "cluster", "the state of the cluster is "+s.cluster, "look at CLUSTER NODES")
	}
	return finding(driver.SeverityOK, "cluster", "its state is ok", "")
}
